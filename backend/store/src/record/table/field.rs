//! Encodings of value types as fields, and their alternative forms.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use jiff::civil::DateTime;
use prost::encoding::{DecodeContext, WireType};

use super::{Reader, Table, Unreadable, Writer};
use crate::domain::{CertificateName, Dialect, EventId, Name, RecordId, SortField, TraceContext};

#[derive(Debug)]
pub(crate) struct PlainForm;
/// `None` is omitted. Zero and empty values are read as `None`.
#[derive(Debug)]
pub(crate) struct OptionalForm;
/// All numbers of a list in one field.
#[derive(Debug)]
pub(crate) struct PackedForm;
/// A number in 8 bytes.
#[derive(Debug)]
pub(crate) struct FixedForm;
/// A message that is omitted if it is empty.
#[derive(Debug)]
pub(crate) struct NonEmptyForm;
/// A message whose only field, 1, is the value.
#[derive(Debug)]
pub(crate) struct WrapperForm;

pub(crate) trait PutField<Form = PlainForm> {
    fn is_zero(&self) -> bool {
        false
    }

    fn put_always(&self, tag: u32, to: &mut Writer<'_>);

    fn put(&self, tag: u32, to: &mut Writer<'_>) {
        if !self.is_zero() {
            self.put_always(tag, to);
        }
    }
}

pub(crate) trait TakeField<Form = PlainForm>: Sized {
    type Slot<'a>: Default;

    /// Reads a field into the slot; for single values the last one wins.
    fn merge<'a>(
        slot: &mut Self::Slot<'a>,
        tag: u32,
        wire_type: WireType,
        from: &mut Reader<'a>,
    ) -> Result<(), Unreadable>;

    fn finish(slot: Self::Slot<'_>) -> Option<Self>;

    fn value_if_absent() -> Option<Self> {
        Self::finish(Self::Slot::default())
    }

    fn take(
        tag: u32,
        wire_type: WireType,
        from: &mut Reader<'_>,
    ) -> Result<Option<Self>, Unreadable> {
        let mut slot = Self::Slot::default();
        Self::merge(&mut slot, tag, wire_type, from)?;
        Ok(Self::finish(slot))
    }
}

pub(crate) struct Slot<'a, T: TakeField<Form>, Form = PlainForm>(T::Slot<'a>);

impl<T: TakeField<Form>, Form> Default for Slot<'_, T, Form> {
    fn default() -> Self {
        Self(T::Slot::default())
    }
}

impl<'a, T: TakeField<Form>, Form> Slot<'a, T, Form> {
    pub(crate) fn merge(
        &mut self,
        tag: u32,
        wire_type: WireType,
        from: &mut Reader<'a>,
    ) -> Result<(), Unreadable> {
        T::merge(&mut self.0, tag, wire_type, from)
    }

    pub(crate) fn finish(self) -> Option<T> {
        T::finish(self.0)
    }
}

macro_rules! scalar {
    ($($type:ty, $form:ty, $as:ident;)+) => {$(
        impl PutField<$form> for $type {
            fn is_zero(&self) -> bool {
                PartialEq::eq(self, &Self::default())
            }

            fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
                prost::encoding::$as::encode(tag, self, &mut to.bytes);
            }
        }

        impl TakeField<$form> for $type {
            type Slot<'a> = Self;

            fn merge(
                slot: &mut Self,
                _tag: u32,
                wire_type: WireType,
                from: &mut Reader<'_>,
            ) -> Result<(), Unreadable> {
                let context = DecodeContext::default();
                Ok(prost::encoding::$as::merge(wire_type, slot, &mut from.rest, context)?)
            }

            fn finish(slot: Self) -> Option<Self> {
                Some(slot)
            }
        }
    )+};
}

scalar! {
    bool, PlainForm, bool;
    u32, PlainForm, uint32;
    u64, PlainForm, uint64;
    i32, PlainForm, int32;
    i64, PlainForm, int64;
    f64, PlainForm, double;
    u64, FixedForm, fixed64;
}

macro_rules! packed {
    ($($type:ty, $as:ident;)+) => {$(
        impl PutField<PackedForm> for Vec<$type> {
            fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
                prost::encoding::$as::encode_packed(tag, self, &mut to.bytes);
            }
        }

        impl TakeField<PackedForm> for Vec<$type> {
            type Slot<'a> = Self;

            fn merge(
                slot: &mut Self,
                _tag: u32,
                wire_type: WireType,
                from: &mut Reader<'_>,
            ) -> Result<(), Unreadable> {
                let context = DecodeContext::default();
                let from = &mut from.rest;
                Ok(prost::encoding::$as::merge_repeated(wire_type, slot, from, context)?)
            }

            fn finish(slot: Self) -> Option<Self> {
                Some(slot)
            }
        }
    )+};
}

packed! {
    bool, bool;
    u32, uint32;
    i64, int64;
}

macro_rules! number {
    ($type:ty, $number:expr, $of_number:expr) => {
        impl $crate::record::table::PutField for $type {
            fn is_zero(&self) -> bool {
                ($number)(self) == 0
            }

            fn put_always(&self, tag: u32, to: &mut $crate::record::table::Writer<'_>) {
                let number: i32 = ($number)(self);
                <i32 as $crate::record::table::PutField>::put_always(&number, tag, to);
            }
        }

        impl $crate::record::table::TakeField for $type {
            type Slot<'a> = i32;

            fn merge(
                slot: &mut i32,
                tag: u32,
                wire_type: prost::encoding::WireType,
                from: &mut $crate::record::table::Reader<'_>,
            ) -> Result<(), $crate::record::table::Unreadable> {
                <i32 as $crate::record::table::TakeField>::merge(slot, tag, wire_type, from)
            }

            fn finish(slot: i32) -> Option<Self> {
                ($of_number)(slot)
            }
        }
    };
}

macro_rules! delimited {
    ($slot:ty, $read:ident; $([$($generics:tt)*] $type:ty, $bytes:expr, $of:expr;)+) => {$(
        impl $($generics)* PutField for $type {
            fn is_zero(&self) -> bool {
                AsRef::<[u8]>::as_ref(&($bytes)(self)).is_empty()
            }

            fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
                to.write_bytes(tag, ($bytes)(self).as_ref());
            }
        }

        impl $($generics)* TakeField for $type {
            type Slot<'a> = &'a $slot;

            fn merge<'a>(
                slot: &mut &'a $slot,
                _tag: u32,
                wire_type: WireType,
                from: &mut Reader<'a>,
            ) -> Result<(), Unreadable> {
                *slot = from.$read(wire_type)?;
                Ok(())
            }

            fn finish(slot: &$slot) -> Option<Self> {
                ($of)(slot)
            }
        }
    )+};
}

delimited! { str, read_text;
    [] String, String::as_str, |text: &str| Some(text.to_owned());
    [] Name, Name::as_str, |text: &str| Name::parse(text).ok();
    [] CertificateName, CertificateName::as_str, |text: &str| CertificateName::parse(text).ok();
    [] Dialect, |it: &Self| it.as_str(), Dialect::from_name;
    [] DateTime, ToString::to_string, |text: &str| text.parse().ok();
    [] SortField, |it: &Self| it.as_str(), |text: &str| SortField::from_word(text).ok();
}

delimited! { [u8], read_bytes;
    [] Vec<u8>, Vec::as_slice, |bytes: &[u8]| Some(bytes.into());
    [<const N: usize>] [u8; N], |bytes: &Self| *bytes, |bytes: &[u8]| bytes.try_into().ok();
    [] RecordId, |id: &Self| id.to_bytes(), |id: &[u8]| Some(Self::from_bytes(id.try_into().ok()?));
    [] EventId, |id: &Self| id.to_bytes(), |id: &[u8]| Some(Self::from_bytes(id.try_into().ok()?));
    [] TraceContext, |it: &Self| it.to_bytes(), |it: &[u8]| Some(Self::from_bytes(it.try_into().ok()?));
}

/// A message that is being read: its bytes, and the result so far.
#[derive(Debug)]
pub(crate) struct PartialMessage<'a, T> {
    bytes: Cow<'a, [u8]>,
    read: Result<T, MissingField>,
}

#[derive(Debug)]
enum MissingField {
    Absent,
    Impossible,
}

impl<T> Default for PartialMessage<'_, T> {
    fn default() -> Self {
        Self {
            bytes: Cow::Borrowed(&[]),
            read: Err(MissingField::Absent),
        }
    }
}

impl<'a, T> PartialMessage<'a, T> {
    /// Merges a further occurrence of the message.
    pub(crate) fn merge(
        &mut self,
        piece: Reader<'a>,
        read: impl Fn(Reader<'_>) -> Result<Option<T>, Unreadable>,
    ) -> Result<(), Unreadable> {
        self.bytes = match self.read {
            Err(MissingField::Absent) => Cow::Borrowed(piece.rest),
            _ => Cow::Owned([&self.bytes, piece.rest].concat()),
        };
        let rest = &self.bytes;
        self.read = read(Reader { rest, ..piece })?.ok_or(MissingField::Impossible);
        Ok(())
    }

    pub(crate) fn finish(self) -> Option<T> {
        self.read.ok()
    }

    fn finish_or(self, absent: impl FnOnce() -> Option<T>) -> Option<T> {
        match self.read {
            Err(MissingField::Absent) => absent(),
            read => read.ok(),
        }
    }
}

macro_rules! message {
    ($type:ty) => {
        impl $crate::record::table::PutField for $type {
            fn put_always(&self, tag: u32, to: &mut $crate::record::table::Writer<'_>) {
                to.write_message(tag, |to| {
                    $crate::record::table::Table::write(self, to);
                });
            }
        }

        impl $crate::record::table::TakeField for $type {
            type Slot<'a> = $crate::record::table::field::PartialMessage<'a, Self>;

            fn merge<'a>(
                slot: &mut Self::Slot<'a>,
                _tag: u32,
                wire_type: prost::encoding::WireType,
                from: &mut $crate::record::table::Reader<'a>,
            ) -> Result<(), $crate::record::table::Unreadable> {
                let read = <Self as $crate::record::table::Table>::read;
                slot.merge(from.read_message(wire_type)?, read)
            }

            fn finish(slot: Self::Slot<'_>) -> Option<Self> {
                slot.finish()
            }

            fn value_if_absent() -> Option<Self> {
                $crate::record::table::field::read_empty()
            }
        }
    };
}

pub(crate) use {message, number};

pub(crate) fn read_empty<T: Table>() -> Option<T> {
    let nothing = Reader::new(&[], super::Secrets::LeftOut);
    T::read(nothing).ok().flatten()
}

impl<T: PutField> PutField<WrapperForm> for T {
    fn is_zero(&self) -> bool {
        PutField::<PlainForm>::is_zero(self)
    }

    fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
        to.write_message(tag, |to| PutField::<PlainForm>::put(self, 1, to));
    }
}

impl<T: TakeField> TakeField<WrapperForm> for T {
    type Slot<'a> = PartialMessage<'a, T>;

    fn merge<'a>(
        slot: &mut PartialMessage<'a, T>,
        _tag: u32,
        wire_type: WireType,
        from: &mut Reader<'a>,
    ) -> Result<(), Unreadable> {
        slot.merge(from.read_message(wire_type)?, |mut from| {
            let mut slot = T::Slot::default();
            while let Some((tag, wire_type)) = from.read_key()? {
                match tag {
                    1 => T::merge(&mut slot, tag, wire_type, &mut from)?,
                    _ => from.skip(tag, wire_type)?,
                }
            }
            Ok(T::finish(slot))
        })
    }

    fn finish(slot: PartialMessage<'_, T>) -> Option<Self> {
        slot.finish_or(T::value_if_absent)
    }
}

impl<T: Table> PutField<NonEmptyForm> for T {
    fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
        let at = to.bytes.len();
        to.write_message(tag, |to| self.write(to));
        if to.bytes.ends_with(&[0]) && to.bytes.len() == at + prost::encoding::key_len(tag) + 1 {
            to.bytes.truncate(at);
        }
    }
}

impl<T: Table> TakeField<NonEmptyForm> for T {
    type Slot<'a> = PartialMessage<'a, T>;

    fn merge<'a>(
        slot: &mut PartialMessage<'a, T>,
        _tag: u32,
        wire_type: WireType,
        from: &mut Reader<'a>,
    ) -> Result<(), Unreadable> {
        slot.merge(from.read_message(wire_type)?, T::read)
    }

    fn finish(slot: PartialMessage<'_, T>) -> Option<Self> {
        slot.finish_or(read_empty)
    }
}

impl<T: PutField> PutField for &T {
    fn is_zero(&self) -> bool {
        PutField::<PlainForm>::is_zero(*self)
    }

    fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
        PutField::<PlainForm>::put_always(*self, tag, to);
    }
}

impl PutField for &str {
    fn is_zero(&self) -> bool {
        self.is_empty()
    }

    fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
        to.write_bytes(tag, self.as_bytes());
    }
}

impl<T: PutField> PutField for &[T] {
    fn is_zero(&self) -> bool {
        self.is_empty()
    }

    fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
        for value in *self {
            PutField::<PlainForm>::put_always(value, tag, to);
        }
    }
}

impl<T: PutField> PutField for Box<T> {
    fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
        PutField::<PlainForm>::put_always(&**self, tag, to);
    }
}

impl<T: TakeField> TakeField for Box<T> {
    type Slot<'a> = T::Slot<'a>;

    fn merge<'a>(
        slot: &mut T::Slot<'a>,
        tag: u32,
        wire_type: WireType,
        from: &mut Reader<'a>,
    ) -> Result<(), Unreadable> {
        T::merge(slot, tag, wire_type, from)
    }

    fn finish(slot: T::Slot<'_>) -> Option<Self> {
        T::finish(slot).map(Self::new)
    }
}

impl<T: PutField> PutField for Option<T> {
    fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
        if let Some(value) = self {
            PutField::<PlainForm>::put_always(value, tag, to);
        }
    }
}

impl<T: TakeField> TakeField for Option<T> {
    type Slot<'a> = Option<T::Slot<'a>>;

    fn merge<'a>(
        slot: &mut Self::Slot<'a>,
        tag: u32,
        wire_type: WireType,
        from: &mut Reader<'a>,
    ) -> Result<(), Unreadable> {
        T::merge(slot.get_or_insert_default(), tag, wire_type, from)
    }

    fn finish(slot: Self::Slot<'_>) -> Option<Self> {
        match slot {
            None => Some(None),
            Some(slot) => T::finish(slot).map(Some),
        }
    }
}

impl<T: PutField> PutField<OptionalForm> for Option<T> {
    fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
        if let Some(value) = self {
            PutField::<PlainForm>::put(value, tag, to);
        }
    }
}

impl<T: TakeField> TakeField<OptionalForm> for Option<T>
where
    for<'a> T::Slot<'a>: PartialEq,
{
    type Slot<'a> = T::Slot<'a>;

    fn merge<'a>(
        slot: &mut T::Slot<'a>,
        tag: u32,
        wire_type: WireType,
        from: &mut Reader<'a>,
    ) -> Result<(), Unreadable> {
        T::merge(slot, tag, wire_type, from)
    }

    fn finish(slot: T::Slot<'_>) -> Option<Self> {
        if slot == Default::default() {
            return Some(None);
        }
        T::finish(slot).map(Some)
    }
}

#[derive(Debug)]
pub(crate) struct PartialList<T>(Option<Vec<T>>);

impl<T> Default for PartialList<T> {
    fn default() -> Self {
        Self(Some(Vec::new()))
    }
}

macro_rules! many {
    ($($type:ident $(+ $order:ident)?;)+) => {$(
        impl<T: PutField> PutField for $type<T> {
            fn is_zero(&self) -> bool {
                self.is_empty()
            }

            fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
                for value in self {
                    PutField::<PlainForm>::put_always(value, tag, to);
                }
            }
        }

        impl<T: TakeField $(+ $order)?> TakeField for $type<T> {
            type Slot<'a> = PartialList<T>;

            fn merge(
                slot: &mut PartialList<T>,
                tag: u32,
                wire_type: WireType,
                from: &mut Reader<'_>,
            ) -> Result<(), Unreadable> {
                match (T::take(tag, wire_type, from)?, &mut slot.0) {
                    (Some(value), Some(values)) => values.push(value),
                    _ => slot.0 = None,
                }
                Ok(())
            }

            fn finish(slot: PartialList<T>) -> Option<Self> {
                Some(slot.0?.into_iter().collect())
            }
        }
    )+};
}

many! {
    Vec;
    BTreeSet + Ord;
}

impl<T: PutField> PutField for BTreeMap<String, T> {
    fn is_zero(&self) -> bool {
        self.is_empty()
    }

    fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
        /// An empty message with field number 2.
        const EMPTY: [u8; 2] = [2 << 3 | WireType::LengthDelimited as u8, 0];

        for (key, value) in self {
            to.write_message(tag, |to| {
                PutField::<PlainForm>::put(key, 1, to);
                let at = to.bytes.len();
                PutField::<PlainForm>::put(value, 2, to);
                if to.bytes[at..] == EMPTY {
                    to.bytes.truncate(at);
                }
            });
        }
    }
}

impl<T: TakeField> TakeField for BTreeMap<String, T> {
    type Slot<'a> = BTreeMap<String, Option<T>>;

    fn merge(
        slot: &mut BTreeMap<String, Option<T>>,
        _tag: u32,
        wire_type: WireType,
        from: &mut Reader<'_>,
    ) -> Result<(), Unreadable> {
        let mut from = from.read_message(wire_type)?;
        let mut key = "";
        let mut value = None;
        while let Some((tag, wire_type)) = from.read_key()? {
            match tag {
                1 => key = from.read_text(wire_type)?,
                2 => {
                    let value = value.get_or_insert_default();
                    T::merge(value, tag, wire_type, &mut from)?;
                }
                _ => from.skip(tag, wire_type)?,
            }
        }
        slot.insert(
            key.to_owned(),
            value.map_or_else(T::value_if_absent, T::finish),
        );
        Ok(())
    }

    fn finish(slot: BTreeMap<String, Option<T>>) -> Option<Self> {
        let pairs = slot.into_iter();
        pairs.map(|(key, value)| Some((key, value?))).collect()
    }
}
