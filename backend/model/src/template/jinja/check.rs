//! Checks that templates use only constructs whose cost is bounded by the template and its data.

use minijinja::machinery::{
    Span,
    ast::{Call, CallArg, Expr, Stmt},
};

use super::{
    super::TemplateError,
    filters::{FILTERS, TESTS},
    scan,
};

pub(super) const RANGE_MAX: i128 = 100;

/// Filters whose result is a list.
const LISTING: [&str; 17] = [
    "batch",
    "chain",
    "dictsort",
    "groupby",
    "items",
    "lines",
    "list",
    "map",
    "reject",
    "rejectattr",
    "select",
    "selectattr",
    "slice",
    "sort",
    "split",
    "unique",
    "zip",
];

type CheckError = (Span, String);

pub(super) fn check(source: &str, template: &Stmt<'_>) -> Result<(), TemplateError> {
    check_statement(template).map_err(|(span, message)| scan::error_at(source, span, message))
}

fn check_statements(all: &[Stmt<'_>]) -> Result<(), CheckError> {
    all.iter().try_for_each(check_statement)
}

fn check_statement(it: &Stmt<'_>) -> Result<(), CheckError> {
    match it {
        Stmt::Template(it) => check_statements(&it.children),
        Stmt::EmitRaw(_) => Ok(()),
        Stmt::EmitExpr(it) => check_expression(&it.expr),
        Stmt::ForLoop(it) => {
            if it.recursive {
                let message = "`recursive` is not supported; use a nested loop";
                return Err((it.span(), message.into()));
            }
            check_expression(&it.iter)?;
            it.filter_expr.as_ref().map_or(Ok(()), check_expression)?;
            check_statements(&it.body)?;
            check_statements(&it.else_body)
        }
        Stmt::IfCond(it) => {
            check_expression(&it.expr)?;
            check_statements(&it.true_body)?;
            check_statements(&it.false_body)
        }
        Stmt::WithBlock(it) => {
            for (target, value) in &it.assignments {
                check_assignment(target, Some(value))?;
            }
            check_statements(&it.body)
        }
        Stmt::Set(it) => check_assignment(&it.target, Some(&it.expr)),
        Stmt::SetBlock(it) => {
            check_assignment(&it.target, None)?;
            it.filter.as_ref().map_or(Ok(()), check_expression)?;
            check_statements(&it.body)
        }
        Stmt::AutoEscape(it) => check_statements(&it.body),
        Stmt::FilterBlock(it) => {
            check_expression(&it.filter)?;
            check_statements(&it.body)
        }
        Stmt::Do(it) => Err((it.span(), "`do` is not supported".into())),
    }
}

fn check_assignment(target: &Expr<'_>, value: Option<&Expr<'_>>) -> Result<(), CheckError> {
    let Expr::Var(_) = target else {
        let message = "only a variable can be set, not part of a list or object; to count, sum or \
                     join, use filters such as `length`, `sum` and `join`";
        return Err((target.span(), message.into()));
    };
    let Some(value) = value else {
        return Ok(());
    };
    if is_listing(value) {
        let message = "a variable can be set to a string, number or boolean, not to a list or object; use the list where \
                     it is needed, as in `{% for x in ... %}`";
        return Err((value.span(), message.into()));
    }
    check_expression(value)
}

/// Whether the result is a list or an object, regardless of the variables.
fn is_listing(value: &Expr<'_>) -> bool {
    match value {
        Expr::List(_) | Expr::Tuple(_) | Expr::Map(_) => true,
        Expr::Filter(it) => LISTING.contains(&it.name),
        Expr::Call(it) => {
            matches!(&it.expr, Expr::Var(name) if ["range", "dict"].contains(&name.id))
        }
        Expr::IfExpr(it) => {
            is_listing(&it.true_expr) || it.false_expr.as_ref().is_some_and(is_listing)
        }
        _ => false,
    }
}

fn check_expressions<'e, 't: 'e>(
    all: impl IntoIterator<Item = &'e Expr<'t>>,
) -> Result<(), CheckError> {
    all.into_iter().try_for_each(check_expression)
}

fn check_expression(it: &Expr<'_>) -> Result<(), CheckError> {
    match it {
        Expr::Var(_) | Expr::Const(_) => Ok(()),
        Expr::Slice(it) => {
            let bounds = [&it.start, &it.stop, &it.step];
            check_expressions(bounds.into_iter().flatten().chain([&it.expr]))
        }
        Expr::UnaryOp(it) => check_expression(&it.expr),
        Expr::BinOp(it) => check_expressions([&it.left, &it.right]),
        Expr::Compare(it) => {
            check_expression(&it.expr)?;
            check_expressions(it.ops.iter().map(|op| &op.expr))
        }
        Expr::IfExpr(it) => {
            check_expressions([&it.test_expr, &it.true_expr])?;
            check_expressions(&it.false_expr)
        }
        Expr::Filter(it) if !FILTERS.contains(&it.name) => {
            Err(unknown_filter_error(it.span(), it.name))
        }
        Expr::Filter(it) => {
            check_expressions(&it.expr)?;
            check_applied_name(it.span(), it.name, &it.args)?;
            check_arguments(it.span(), &it.args)
        }
        Expr::Test(it) => {
            check_test(it.span(), it.name)?;
            check_expression(&it.expr)?;
            check_arguments(it.span(), &it.args)
        }
        Expr::GetAttr(it) => check_expression(&it.expr),
        Expr::GetItem(it) => check_expressions([&it.expr, &it.subscript_expr]),
        Expr::Call(it) => {
            check_call(it.span(), it)?;
            check_arguments(it.span(), &it.args)
        }
        Expr::List(it) => check_expressions(&it.items),
        Expr::Tuple(it) => check_expressions(&it.items),
        Expr::Map(it) => check_expressions(it.keys.iter().chain(&it.values)),
    }
}

fn check_applied_name(span: Span, filter: &str, all: &[CallArg<'_>]) -> Result<(), CheckError> {
    let at = match filter {
        "map" | "select" | "reject" => 0,
        "selectattr" | "rejectattr" => 1,
        _ => return Ok(()),
    };
    let Some(CallArg::Pos(Expr::Const(name))) = all.get(at) else {
        return Ok(());
    };
    match name.value.as_str() {
        Some(name) if filter == "map" && !FILTERS.contains(&name) => {
            Err(unknown_filter_error(span, name))
        }
        Some(name) if filter != "map" => check_test(span, name),
        _ => Ok(()),
    }
}

fn check_test(span: Span, name: &str) -> Result<(), CheckError> {
    if TESTS.contains(&name) {
        return Ok(());
    }
    Err((span, format!("unknown test `{name}`")))
}

fn unknown_filter_error(span: Span, name: &str) -> CheckError {
    (span, format!("unknown filter `{name}`"))
}

fn check_arguments(span: Span, all: &[CallArg<'_>]) -> Result<(), CheckError> {
    all.iter().try_for_each(|it| match it {
        CallArg::Pos(value) | CallArg::Kwarg(_, value) => check_expression(value),
        CallArg::PosSplat(_) | CallArg::KwargSplat(_) => {
            Err((span, "`*` and `**` arguments are not supported".into()))
        }
    })
}

fn check_call(span: Span, it: &Call<'_>) -> Result<(), CheckError> {
    match &it.expr {
        Expr::GetAttr(method) => check_expression(&method.expr),
        Expr::Var(name) if name.id == "dict" => Ok(()),
        Expr::Var(name) if name.id == "range" => {
            let is_long = it.args.iter().any(|argument| {
                let CallArg::Pos(Expr::Const(number)) = argument else {
                    return false;
                };
                i128::try_from(number.value.clone()).is_ok_and(|it| it > RANGE_MAX)
            });
            if is_long && it.args.len() == 1 {
                return Err((span, range_error()));
            }
            Ok(())
        }
        Expr::Var(name) if name.id == "namespace" => {
            let message = "`namespace` is not supported; to count, sum or join, use filters such as `length`, \
                         `sum` and `join`";
            Err((span, message.into()))
        }
        Expr::Var(name) => Err((span, format!("unknown function `{}`", name.id))),
        _ => Err((span, "not a function".into())),
    }
}

pub(super) fn range_error() -> String {
    format!("`range` has more than {RANGE_MAX} numbers")
}
