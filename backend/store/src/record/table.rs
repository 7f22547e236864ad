//! Records as tables that assign a number to each field of a value.
//!
//! ```ignore
//! record! { Inhibition { 1 id, 2 name, 3 description } }
//! ```
//!
//! is all that a record needs. The encoding is that of Protocol Buffers: zero and empty fields are
//! omitted, and unknown fields are skipped. The types come from the struct, and the encoding of
//! each type is in [`field`]. A field that is missing from the table does not compile.
//!
//! **To add a field**, add it to the struct, and to its table under the next free number. Numbers
//! are never reused. Existing records lack the new field: it is read as zero, empty or `None`, and
//! a required id or name makes them unreadable. Where the type is not sufficient:
//!
//! - `35 assignee as Blank` selects another form of the same type; the forms are in [`field`].
//! - `15 close_ms = it.close.map_or(0, |close| close.at_ms)` writes a value that is computed from
//!   the record (`record! { Occurrence as it { … } with { … } }`). The value that was read is in a
//!   variable of that name, from which the part after `with` builds the remaining fields of the
//!   struct, or the part after `=>` the whole record; a `?` on `None` there marks an invalid
//!   record.
//! - `record! { Client as it, secrets { … } … }` names the value that seals and opens secrets.
//! - A fieldless enum has its numbers in a `numbers!`, an enum whose variants are separate fields
//!   in a `one_of!`.

pub(super) mod field;
pub(super) mod wire;

pub(super) use self::{
    field::{
        FixedForm, NonEmptyForm, OptionalForm, PackedForm, PlainForm, PutField, Slot, TakeField,
        WrapperForm,
    },
    wire::{Reader, Secrets, Unreadable, Writer},
};

pub(super) trait Table: Sized {
    fn write(&self, to: &mut Writer<'_>);

    /// Returns `None` if a value is invalid.
    fn read(from: Reader<'_>) -> Result<Option<Self>, Unreadable>;
}

pub(super) const fn is_ascending(numbers: &[u32]) -> bool {
    let mut at = 1;
    while at < numbers.len() {
        if numbers[at - 1] >= numbers[at] {
            return false;
        }
        at += 1;
    }
    true
}

macro_rules! record {
    ($type:ty { $($columns:tt)* }) => {
        record!(@table $type, it, (), { $($columns)* }, { record!(@build [] { $($columns)* } []) });
    };
    ($type:ty as $it:ident $(, $secrets:ident)? { $($columns:tt)* } with { $($more:tt)* }) => {
        record!(
            @table $type, $it, ($($secrets)?), { $($columns)* },
            { record!(@build [] { $($columns)* } [$($more)*]) }
        );
    };
    ($type:ty as $it:ident $(, $secrets:ident)? { $($columns:tt)* } => $build:expr) => {
        record!(@table $type, $it, ($($secrets)?), { $($columns)* }, { $build });
    };
    (
        @table $type:ty, $it:ident, ($($secrets:ident)?),
        { $($tag:literal $name:ident $(as $form:ident)? $(= $of:expr)?),+ $(,)? },
        $build:block
    ) => {
        const _: () = assert!($crate::record::table::is_ascending(&[$($tag),+]));

        impl $crate::record::table::Table for $type {
            fn write(&self, to: &mut $crate::record::table::Writer<'_>) {
                let $it = self;
                $(let $secrets = to.secrets;)?
                $($crate::record::table::PutField::<record!(@form $($form)?)>::put(
                    &record!(@value $it $name $(= $of)?), $tag, to,
                );)+
            }

            fn read(
                mut from: $crate::record::table::Reader<'_>,
            ) -> Result<Option<Self>, $crate::record::table::Unreadable> {
                $(let mut $name =
                    $crate::record::table::Slot::<'_, _, record!(@form $($form)?)>::default();)+
                while let Some((tag, wire_type)) = from.read_key()? {
                    match tag {
                        $($tag => $name.merge(tag, wire_type, &mut from)?,)+
                        _ => from.skip(tag, wire_type)?,
                    }
                }
                $(let $secrets = from.secrets;)?
                let build = move || -> Option<Self> {
                    $(let $name = $name.finish()?;)+
                    $build
                };
                Ok(build())
            }
        }

        $crate::record::table::field::message!($type);
    };
    (@form) => { $crate::record::table::PlainForm };
    (@form $form:ident) => { $crate::record::table::$form };
    (@value $it:ident $name:ident) => { $it.$name };
    (@value $it:ident $name:ident = $of:expr) => { $of };
    // The fields of the struct: those with the name of their column, and those declared separately.
    (@build [$($done:tt)*] {} [$($more:tt)*]) => { Some(Self { $($done)* $($more)* }) };
    (
        @build [$($done:tt)*]
        { $tag:literal $name:ident $(as $form:ident)? = $of:expr $(, $($rest:tt)*)? }
        [$($more:tt)*]
    ) => { record!(@build [$($done)*] { $($($rest)*)? } [$($more)*]) };
    (
        @build [$($done:tt)*]
        { $tag:literal $name:ident $(as $form:ident)? $(, $($rest:tt)*)? }
        [$($more:tt)*]
    ) => { record!(@build [$($done)* $name,] { $($($rest)*)? } [$($more)*]) };
}

/// Defines an enum each of whose variants is a field. The last field read wins.
macro_rules! one_of {
    ($type:ty {
        $(unit $unit_tag:literal $unit_name:ident $unit:ident,)?
        $($tag:literal $name:ident $variant:ident $(as $form:ident)?),+ $(,)?
    }) => {
        impl $crate::record::table::Table for $type {
            fn write(&self, to: &mut $crate::record::table::Writer<'_>) {
                match self {
                    $(Self::$unit => {
                        $crate::record::table::PutField::<$crate::record::table::PlainForm>::put_always(
                            &true, $unit_tag, to,
                        );
                    })?
                    $(Self::$variant(it) => {
                        $crate::record::table::PutField::<$crate::record::table::record!(@form $($form)?)>::put_always(
                            it, $tag, to,
                        );
                    })+
                }
            }

            fn read(
                mut from: $crate::record::table::Reader<'_>,
            ) -> Result<Option<Self>, $crate::record::table::Unreadable> {
                use $crate::record::table::Slot;

                $(let mut $unit_name = Slot::<'_, bool>::default();)?
                $(let mut $name = Slot::<'_, _, $crate::record::table::record!(@form $($form)?)>::default();)+
                let mut last = 0;
                while let Some((tag, wire_type)) = from.read_key()? {
                    match tag {
                        $($unit_tag => $unit_name.merge(tag, wire_type, &mut from)?,)?
                        $($tag => {
                            if last != tag {
                                $name = Slot::default();
                            }
                            $name.merge(tag, wire_type, &mut from)?;
                        })+
                        _ => {
                            from.skip(tag, wire_type)?;
                            continue;
                        }
                    }
                    last = tag;
                }
                Ok(match last {
                    $($unit_tag => $unit_name.finish().map(|_| Self::$unit),)?
                    $($tag => $name.finish().map(Self::$variant),)+
                    _ => None,
                })
            }
        }

        $crate::record::table::field::message!($type);
    };
}

/// Defines the numbers of fieldless enums: as a list, or by their discriminants.
macro_rules! numbers {
    ($($type:ty { $($number:literal $variant:ident),+ $(,)? })+) => {
        $($crate::record::table::field::number!(
            $type,
            |it: &$type| match it { $(<$type>::$variant => $number),+ },
            |number: i32| match number {
                $($number => Some(<$type>::$variant),)+
                _ => None,
            }
        );)+
    };
    ($($type:ty),+ $(,)?) => {
        $($crate::record::table::field::number!(
            $type,
            |it: &$type| *it as i32,
            |number: i32| <$type>::ALL.into_iter().find(|it| *it as i32 == number)
        );)+
    };
}

pub(super) use {numbers, one_of, record};
