//! Evaluates Jinja templates. Each step is charged by the size of the values that it reads and
//! creates.

use std::collections::BTreeMap;

use minijinja::{
    AutoEscape, Error, State, Value,
    machinery::ast::{
        BinOp, BinOpKind, Call, CallArg, Compare, CompareOpKind, Expr, Filter, ForLoop, Map, Slice,
        Stmt, UnaryOpKind,
    },
    value::ValueKind,
};

use super::{
    apply, arithmetic,
    check::{self, RANGE_MAX},
    error::invalid_operation,
    filters,
    meter::{Meter, VALUE_DEPTH_MAX},
};
use crate::template::RenderError;

/// The positional and named arguments of a call.
type Arguments = (Vec<Value>, Vec<(String, Value)>);

#[derive(Default)]
struct Scope<'t> {
    names: BTreeMap<&'t str, Value>,
    cycle: Option<LoopState>,
}

struct LoopState {
    index: usize,
    length: usize,
    depth: usize,
    /// The arguments of the last `loop.changed`.
    last: Option<Vec<Value>>,
}

pub(super) struct Evaluation<'r, 's, 't> {
    state: &'r mut State<'s, 's>,
    meter: Meter,
    scopes: Vec<Scope<'t>>,
    /// The output of the current block, preceded by those of its enclosing blocks.
    written: Vec<String>,
    /// The start of the current expression, in bytes.
    pub(super) at: u32,
}

impl<'r, 's, 't> Evaluation<'r, 's, 't> {
    /// Creates an evaluation with the variables and steps of a state and a limit on the output.
    pub(super) fn new(state: &'r mut State<'s, 's>, bytes_max: usize) -> Self {
        Self {
            state,
            meter: Meter::new(bytes_max),
            scopes: vec![Scope::default()],
            written: vec![String::new()],
            at: 0,
        }
    }

    pub(super) fn run(&mut self, template: &'t Stmt<'t>) -> Result<String, Error> {
        self.run_statement(template)?;
        Ok(std::mem::take(&mut self.written[0]))
    }

    pub(super) fn limit(&self) -> Option<RenderError> {
        self.meter.limit.take()
    }

    fn run_statements(&mut self, all: &'t [Stmt<'t>]) -> Result<(), Error> {
        all.iter().try_for_each(|it| self.run_statement(it))
    }

    fn run_statement(&mut self, it: &'t Stmt<'t>) -> Result<(), Error> {
        self.meter.spend(self.state, 1)?;
        match it {
            Stmt::Template(it) => self.run_statements(&it.children),
            Stmt::EmitRaw(it) => self.write(it.raw),
            Stmt::EmitExpr(it) => {
                let value = self.evaluate_expression(&it.expr)?;
                let text = self.escape(&value)?;
                self.write(&text)
            }
            Stmt::ForLoop(it) => self.run_loop(it),
            Stmt::IfCond(it) => {
                if self.evaluate_expression(&it.expr)?.is_true() {
                    self.run_statements(&it.true_body)
                } else {
                    self.run_statements(&it.false_body)
                }
            }
            Stmt::WithBlock(it) => {
                self.scopes.push(Scope::default());
                for (target, value) in &it.assignments {
                    let value = self.evaluate_expression(value)?;
                    self.assign_target(target, value)?;
                }
                self.run_statements(&it.body)?;
                self.scopes.pop();
                Ok(())
            }
            Stmt::Set(it) => {
                let value = self.evaluate_expression(&it.expr)?;
                self.assign_target(&it.target, value)
            }
            Stmt::SetBlock(it) => {
                let mut text = self.render_captured(&it.body)?;
                if let Some(filter) = &it.filter {
                    text = self.apply_filters(filter, text)?;
                }
                self.assign_target(&it.target, text)
            }
            Stmt::FilterBlock(it) => {
                let text = self.render_captured(&it.body)?;
                let value = self.apply_filters(&it.filter, text)?;
                let text = self.escape(&value)?;
                self.write(&text)
            }
            Stmt::AutoEscape(it) => self.run_statements(&it.body),
            Stmt::Do(_) => Err(invalid_operation("`do` is not supported")),
        }
    }

    fn write(&mut self, text: &str) -> Result<(), Error> {
        let written = self.written.last().map_or(0, String::len);
        self.meter
            .charge_text(self.state, written + text.len(), text.len())?;
        if let Some(written) = self.written.last_mut() {
            written.push_str(text);
        }
        Ok(())
    }

    fn escape(&mut self, value: &Value) -> Result<String, Error> {
        self.meter.measure_value(self.state, value)?;
        self.state.format(value.clone())
    }

    fn render_captured(&mut self, body: &'t [Stmt<'t>]) -> Result<Value, Error> {
        self.written.push(String::new());
        self.run_statements(body)?;
        let text = self.written.pop().unwrap_or_default();
        Ok(match self.state.auto_escape() {
            AutoEscape::None => Value::from(text),
            _ => Value::from_safe_string(text),
        })
    }

    fn assign_target(&mut self, target: &'t Expr<'t>, value: Value) -> Result<(), Error> {
        let kind = value.kind();
        if matches!(kind, ValueKind::Seq | ValueKind::Map | ValueKind::Iterable) {
            return Err(invalid_operation(format!(
                "a variable can be set to a string, number or boolean, not to a {kind}"
            )));
        }
        self.bind(target, value)
    }

    /// Assigns a value to a target, or its items to a list of targets.
    fn bind(&mut self, target: &'t Expr<'t>, value: Value) -> Result<(), Error> {
        let targets = match target {
            Expr::Var(name) => {
                if let Some(scope) = self.scopes.last_mut() {
                    scope.names.insert(name.id, value);
                }
                return Ok(());
            }
            Expr::List(it) => &it.items,
            Expr::Tuple(it) => &it.items,
            _ => return Err(invalid_operation("expected a name")),
        };
        let items = self.iterable_items(&value)?;
        if items.len() != targets.len() {
            return Err(invalid_operation(format!(
                "cannot unpack into {} names: there are {} items",
                targets.len(),
                items.len()
            )));
        }
        let mut pairs = targets.iter().zip(items);
        pairs.try_for_each(|(target, item)| self.bind(target, item))
    }

    /// Returns the items of a list, the keys of an object, or the characters of a string.
    fn iterable_items(&mut self, value: &Value) -> Result<Vec<Value>, Error> {
        self.meter.charge_items(self.state, value)
    }

    fn run_loop(&mut self, it: &'t ForLoop<'t>) -> Result<(), Error> {
        let iterated = self.evaluate_expression(&it.iter)?;
        let mut items = self.iterable_items(&iterated)?;
        self.scopes.push(Scope::default());
        if let Some(filter) = &it.filter_expr {
            let mut passed = Vec::new();
            for item in items {
                self.bind(&it.target, item.clone())?;
                if self.evaluate_expression(filter)?.is_true() {
                    passed.push(item);
                }
            }
            items = passed;
        }
        let depth = self.scopes.iter().filter(|it| it.cycle.is_some()).count();
        let length = items.len();
        let mut last = None;
        for (index, item) in items.into_iter().enumerate() {
            self.meter.spend(self.state, 1)?;
            if let Some(scope) = self.scopes.last_mut() {
                let cycle = LoopState {
                    index,
                    length,
                    depth,
                    last,
                };
                scope.cycle = Some(cycle);
            }
            self.bind(&it.target, item)?;
            self.run_statements(&it.body)?;
            let scope = self.scopes.last_mut();
            last = scope.and_then(|it| it.cycle.take()?.last);
        }
        self.scopes.pop();
        if length == 0 {
            self.run_statements(&it.else_body)?;
        }
        Ok(())
    }

    fn find_loop(&mut self) -> Option<&mut LoopState> {
        self.scopes
            .iter_mut()
            .rev()
            .find_map(|it| it.cycle.as_mut())
    }

    fn evaluate_all(&mut self, all: &'t [Expr<'t>]) -> Result<Vec<Value>, Error> {
        all.iter().map(|it| self.evaluate_expression(it)).collect()
    }

    fn evaluate_optional(&mut self, it: Option<&'t Expr<'t>>) -> Result<Option<Value>, Error> {
        it.map(|it| self.evaluate_expression(it)).transpose()
    }

    fn evaluate_expression(&mut self, it: &'t Expr<'t>) -> Result<Value, Error> {
        self.meter.spend(self.state, 1)?;
        self.at = it.span().start_offset;
        match it {
            Expr::Var(name) => Ok(self.look_up_name(name.id)),
            Expr::Const(it) => Ok(it.value.clone()),
            Expr::Slice(it) => self.evaluate_slice(it),
            Expr::UnaryOp(it) => {
                let value = self.evaluate_expression(&it.expr)?;
                match it.op {
                    UnaryOpKind::Not => Ok(Value::from(!value.is_true())),
                    UnaryOpKind::Neg => arithmetic::negate(&value),
                }
            }
            Expr::BinOp(it) => self.evaluate_operation(it),
            Expr::Compare(it) => self.evaluate_comparison(it),
            Expr::IfExpr(it) => {
                if self.evaluate_expression(&it.test_expr)?.is_true() {
                    self.evaluate_expression(&it.true_expr)
                } else {
                    let other = self.evaluate_optional(it.false_expr.as_ref())?;
                    Ok(other.unwrap_or_default())
                }
            }
            Expr::Filter(it) => {
                let value = self.evaluate_optional(it.expr.as_ref())?;
                self.evaluate_filter(it, value.unwrap_or_default())
            }
            Expr::Test(it) => {
                let value = self.evaluate_expression(&it.expr)?;
                let (arguments, _) = self.evaluate_arguments(&it.args)?;
                let passed = apply::apply_test(self.state, &self.meter, it.name, value, &arguments);
                passed.map(Value::from)
            }
            Expr::GetAttr(it) => match (&it.expr, self.find_loop()) {
                (Expr::Var(name), Some(cycle)) if name.id == "loop" => Ok(cycle.member(it.name)),
                _ => {
                    let value = self.evaluate_expression(&it.expr)?;
                    Ok(value.get_attr(it.name).unwrap_or_default())
                }
            },
            Expr::GetItem(it) => {
                let value = self.evaluate_expression(&it.expr)?;
                let key = self.evaluate_expression(&it.subscript_expr)?;
                self.meter.measure_value(self.state, &key)?;
                if let Some(text) = value.as_str() {
                    self.meter.spend_bytes(self.state, text.len())?;
                }
                Ok(value.get_item(&key).unwrap_or_default())
            }
            Expr::Call(it) => self.evaluate_call(it),
            Expr::List(it) => self.evaluate_list(&it.items),
            Expr::Tuple(it) => self.evaluate_list(&it.items),
            Expr::Map(it) => self.evaluate_map(it),
        }
    }

    fn evaluate_operation(&mut self, it: &'t BinOp<'t>) -> Result<Value, Error> {
        let left = self.evaluate_expression(&it.left)?;
        match it.op {
            BinOpKind::ScAnd if !left.is_true() => Ok(left),
            BinOpKind::ScOr if left.is_true() => Ok(left),
            BinOpKind::ScAnd | BinOpKind::ScOr => self.evaluate_expression(&it.right),
            op => {
                let right = self.evaluate_expression(&it.right)?;
                self.apply_operator(op, &left, &right)
            }
        }
    }

    fn evaluate_comparison(&mut self, it: &'t Compare<'t>) -> Result<Value, Error> {
        let mut left = self.evaluate_expression(&it.expr)?;
        for compared in &it.ops {
            let right = self.evaluate_expression(&compared.expr)?;
            if !self.compare(compared.op, &left, &right)? {
                return Ok(Value::from(false));
            }
            left = right;
        }
        Ok(Value::from(true))
    }

    fn evaluate_list(&mut self, items: &'t [Expr<'t>]) -> Result<Value, Error> {
        let items = self.evaluate_all(items)?;
        self.charge_created(Value::from(items))
    }

    fn evaluate_map(&mut self, it: &'t Map<'t>) -> Result<Value, Error> {
        let keys = self.evaluate_all(&it.keys)?;
        for key in &keys {
            self.meter.measure_value(self.state, key)?;
        }
        let values = self.evaluate_all(&it.values)?;
        self.charge_created(Value::from_pairs(keys.into_iter().zip(values)))
    }

    fn charge_created(&mut self, value: Value) -> Result<Value, Error> {
        self.meter.charge(self.state, &value, VALUE_DEPTH_MAX)?;
        Ok(value)
    }

    fn look_up_name(&mut self, name: &str) -> Value {
        let found = self.scopes.iter().rev().find_map(|it| it.names.get(name));
        if let Some(found) = found {
            return found.clone();
        }
        match self.find_loop() {
            Some(cycle) if name == "loop" => cycle.value(),
            _ => self.state.lookup(name).unwrap_or_default(),
        }
    }

    fn apply_operator(
        &mut self,
        op: BinOpKind,
        left: &Value,
        right: &Value,
    ) -> Result<Value, Error> {
        let comparison = match op {
            BinOpKind::Eq => CompareOpKind::Eq,
            BinOpKind::Ne => CompareOpKind::Ne,
            BinOpKind::Lt => CompareOpKind::Lt,
            BinOpKind::Lte => CompareOpKind::Lte,
            BinOpKind::Gt => CompareOpKind::Gt,
            BinOpKind::Gte => CompareOpKind::Gte,
            BinOpKind::In => CompareOpKind::In,
            BinOpKind::Concat => return self.concatenate(left, right),
            BinOpKind::Add if left.as_str().is_some() && right.as_str().is_some() => {
                return self.concatenate(left, right);
            }
            BinOpKind::Add if left.kind() == ValueKind::Seq && right.kind() == ValueKind::Seq => {
                let mut items = self.iterable_items(left)?;
                items.extend(self.iterable_items(right)?);
                return self.charge_created(Value::from(items));
            }
            BinOpKind::Mul if left.as_str().is_some() || right.as_str().is_some() => {
                return self.repeat(left, right);
            }
            op => return arithmetic::calculate(op, left, right),
        };
        self.compare(comparison, left, right).map(Value::from)
    }

    /// Concatenates two values; if only one is markup, the other is escaped.
    fn concatenate(&mut self, left: &Value, right: &Value) -> Result<Value, Error> {
        let is_markup = left.is_safe() || right.is_safe();
        let escapes = is_markup && !matches!(self.state.auto_escape(), AutoEscape::None);
        let mut text = String::new();
        for value in [left, right] {
            self.meter.measure_value(self.state, value)?;
            let part = if escapes && !value.is_safe() {
                self.state.format(value.clone())?
            } else {
                filters::text(self.state, value)?.into_owned()
            };
            self.meter
                .charge_text(self.state, text.len() + part.len(), part.len())?;
            text.push_str(&part);
        }
        Ok(if escapes || (left.is_safe() && right.is_safe()) {
            Value::from_safe_string(text)
        } else {
            Value::from(text)
        })
    }

    fn repeat(&mut self, left: &Value, right: &Value) -> Result<Value, Error> {
        let (text, count) = match (left.as_str(), right.as_str()) {
            (Some(text), None) => (text, right),
            (None, Some(text)) => (text, left),
            _ => return Err(invalid_operation("`*` requires a number")),
        };
        let count = i64::try_from(count.clone())
            .map_err(|_number| invalid_operation("`*` with a string requires an integer"))?;
        let count = usize::try_from(count).unwrap_or(0);
        let bytes = text.len().saturating_mul(count);
        self.meter.charge_text(self.state, bytes, bytes)?;
        Ok(Value::from(text.repeat(count)))
    }

    fn compare(&mut self, op: CompareOpKind, left: &Value, right: &Value) -> Result<bool, Error> {
        self.meter.measure_value(self.state, left)?;
        self.meter.measure_value(self.state, right)?;
        Ok(match op {
            CompareOpKind::Eq => left == right,
            CompareOpKind::Ne => left != right,
            CompareOpKind::Lt => left < right,
            CompareOpKind::Lte => left <= right,
            CompareOpKind::Gt => left > right,
            CompareOpKind::Gte => left >= right,
            CompareOpKind::In => self.contains(right, left)?,
            CompareOpKind::NotIn => !self.contains(right, left)?,
        })
    }

    fn contains(&mut self, container: &Value, value: &Value) -> Result<bool, Error> {
        match container.kind() {
            ValueKind::Undefined | ValueKind::None => Ok(false),
            ValueKind::String => {
                let text = container.as_str().unwrap_or_default();
                Ok(text.contains(&*filters::text(self.state, value)?))
            }
            ValueKind::Map => Ok(container
                .get_item(value)
                .is_ok_and(|found| !found.is_undefined())),
            ValueKind::Seq | ValueKind::Iterable => {
                Ok(self.iterable_items(container)?.contains(value))
            }
            kind => Err(invalid_operation(format!(
                "`in` requires a list, an object or a string, not a {kind}"
            ))),
        }
    }

    fn evaluate_slice(&mut self, it: &'t Slice<'t>) -> Result<Value, Error> {
        let value = self.evaluate_expression(&it.expr)?;
        let mut bounds = [None; 3];
        for (bound, given) in bounds.iter_mut().zip([&it.start, &it.stop, &it.step]) {
            let given = self.evaluate_optional(given.as_ref())?;
            if let Some(given) = given.filter(|it| !it.is_none()) {
                let number = i64::try_from(given);
                *bound = Some(
                    number.map_err(|_number| invalid_operation("slice bounds must be integers"))?,
                );
            }
        }
        let is_text = value.as_str().is_some();
        if !is_text
            && matches!(
                value.kind(),
                ValueKind::Map | ValueKind::Number | ValueKind::Bool
            )
        {
            return Err(invalid_operation(format!(
                "cannot slice a {}",
                value.kind()
            )));
        }
        let items = self.iterable_items(&value)?;
        let picked = arithmetic::slice_indices(items.len(), bounds)?;
        let picked = picked.into_iter().map(|at| items[at].clone());
        if is_text {
            let characters: String = picked
                .filter_map(|it| it.as_str().map(str::to_owned))
                .collect();
            return Ok(Value::from(characters));
        }
        let picked: Vec<_> = picked.collect();
        self.charge_created(Value::from(picked))
    }

    fn evaluate_arguments(&mut self, all: &'t [CallArg<'t>]) -> Result<Arguments, Error> {
        let (mut placed, mut named) = (Vec::new(), Vec::new());
        for argument in all {
            match argument {
                CallArg::Pos(value) => placed.push(self.evaluate_expression(value)?),
                CallArg::Kwarg(name, value) => {
                    named.push(((*name).to_owned(), self.evaluate_expression(value)?));
                }
                CallArg::PosSplat(_) | CallArg::KwargSplat(_) => {
                    return Err(invalid_operation(
                        "`*` and `**` arguments are not supported",
                    ));
                }
            }
        }
        Ok((placed, named))
    }

    fn evaluate_filter(&mut self, it: &'t Filter<'t>, value: Value) -> Result<Value, Error> {
        let (placed, named) = self.evaluate_arguments(&it.args)?;
        apply::apply_filter(self.state, &self.meter, it.name, value, &placed, &named)
    }

    fn apply_filters(&mut self, filters: &'t Expr<'t>, text: Value) -> Result<Value, Error> {
        let Expr::Filter(it) = filters else {
            return Ok(text);
        };
        self.meter.spend(self.state, 1)?;
        let value = match &it.expr {
            Some(inner) => self.apply_filters(inner, text)?,
            None => text,
        };
        self.at = it.span().start_offset;
        self.evaluate_filter(it, value)
    }

    fn evaluate_call(&mut self, it: &'t Call<'t>) -> Result<Value, Error> {
        let (placed, named) = self.evaluate_arguments(&it.args)?;
        match &it.expr {
            Expr::Var(name) if name.id == "range" => self.evaluate_range(&placed),
            Expr::Var(name) if name.id == "dict" && placed.is_empty() => {
                self.charge_created(Value::from_pairs(named))
            }
            Expr::GetAttr(method) => {
                if matches!(&method.expr, Expr::Var(name) if name.id == "loop")
                    && self.find_loop().is_some()
                {
                    return self.call_loop_method(method.name, placed);
                }
                let value = self.evaluate_expression(&method.expr)?;
                self.meter.measure_value(self.state, &value)?;
                let made = filters::call_method(self.state, &value, method.name, &placed)?;
                let made = self.meter.materialize(self.state, made)?;
                self.charge_created(made)
            }
            _ => Err(invalid_operation("not a function")),
        }
    }

    fn call_loop_method(&mut self, name: &str, arguments: Vec<Value>) -> Result<Value, Error> {
        for argument in &arguments {
            self.meter.measure_value(self.state, argument)?;
        }
        let Some(cycle) = self.find_loop() else {
            return Ok(Value::UNDEFINED);
        };
        match name {
            "cycle" if !arguments.is_empty() => {
                let at = cycle.index % arguments.len();
                Ok(arguments[at].clone())
            }
            "changed" => {
                let is_changed = cycle.last.as_ref() != Some(&arguments);
                cycle.last = Some(arguments);
                Ok(Value::from(is_changed))
            }
            _ => Err(invalid_operation(format!("a loop has no method `{name}`"))),
        }
    }

    fn evaluate_range(&mut self, bounds: &[Value]) -> Result<Value, Error> {
        let number = |value: &Value| {
            i64::try_from(value.clone())
                .map_err(|_number| invalid_operation("`range` requires integers"))
        };
        let numbers = bounds.iter().map(number).collect::<Result<Vec<_>, _>>()?;
        let (start, end, step) = match numbers[..] {
            [end] => (0, end, 1),
            [start, end] => (start, end, 1),
            [start, end, step] if step != 0 => (start, end, step),
            _ => {
                return Err(invalid_operation(
                    "`range` requires one to three integers and a non-zero step",
                ));
            }
        };
        let (distance, stride) = (i128::from(end) - i128::from(start), i128::from(step));
        let count = (distance + stride - stride.signum()) / stride;
        if count > RANGE_MAX {
            return Err(invalid_operation(check::range_error()));
        }
        let last = i64::try_from(count.max(0)).unwrap_or_default();
        let numbers: Vec<_> = (0..last).map(|at| Value::from(start + at * step)).collect();
        self.charge_created(Value::from(numbers))
    }
}

impl LoopState {
    fn member(&self, name: &str) -> Value {
        let &Self {
            index,
            length,
            depth,
            ..
        } = self;
        match name {
            "index" => (index + 1).into(),
            "index0" => index.into(),
            "revindex" => (length - index).into(),
            "revindex0" => (length - index - 1).into(),
            "first" => (index == 0).into(),
            "last" => (index + 1 == length).into(),
            "length" => length.into(),
            "depth" => (depth + 1).into(),
            "depth0" => depth.into(),
            _ => Value::UNDEFINED,
        }
    }

    fn value(&self) -> Value {
        let names = [
            "index",
            "index0",
            "revindex",
            "revindex0",
            "first",
            "last",
            "length",
            "depth",
            "depth0",
        ];
        Value::from_pairs(names.map(|name| (name, self.member(name))))
    }
}
