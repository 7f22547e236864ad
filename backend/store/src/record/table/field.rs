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
pub(crate) struct Plain;
/// `None` is omitted. Zero and empty values are read as `None`.
#[derive(Debug)]
pub(crate) struct Blank;
/// All numbers of a list in one field.
#[derive(Debug)]
pub(crate) struct Packed;
/// A number in 8 bytes.
#[derive(Debug)]
pub(crate) struct Fixed;
/// A message that is omitted if it is empty.
#[derive(Debug)]
pub(crate) struct Filled;
/// A message whose only field, 1, is the value.
#[derive(Debug)]
pub(crate) struct Wrapped;

pub(crate) trait Put<Form = Plain> {
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

pub(crate) trait Take<Form = Plain>: Sized {
    type Slot<'a>: Default;

    /// Reads a field into the slot; for single values the last one wins.
    fn merge<'a>(
        slot: &mut Self::Slot<'a>,
        tag: u32,
        wire_type: WireType,
        from: &mut Reader<'a>,
    ) -> Result<(), Unreadable>;

    fn finish(slot: Self::Slot<'_>) -> Option<Self>;

    fn absent() -> Option<Self> {
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

pub(crate) struct Slot<'a, T: Take<Form>, Form = Plain>(T::Slot<'a>);

impl<T: Take<Form>, Form> Default for Slot<'_, T, Form> {
    fn default() -> Self {
        Self(T::Slot::default())
    }
}

impl<'a, T: Take<Form>, Form> Slot<'a, T, Form> {
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
        impl Put<$form> for $type {
            fn is_zero(&self) -> bool {
                PartialEq::eq(self, &Self::default())
            }

            fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
                prost::encoding::$as::encode(tag, self, &mut to.bytes);
            }
        }

        impl Take<$form> for $type {
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
    bool, Plain, bool;
    u32, Plain, uint32;
    u64, Plain, uint64;
    i32, Plain, int32;
    i64, Plain, int64;
    f64, Plain, double;
    u64, Fixed, fixed64;
}

macro_rules! packed {
    ($($type:ty, $as:ident;)+) => {$(
        impl Put<Packed> for Vec<$type> {
            fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
                prost::encoding::$as::encode_packed(tag, self, &mut to.bytes);
            }
        }

        impl Take<Packed> for Vec<$type> {
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
        impl $crate::record::table::Put for $type {
            fn is_zero(&self) -> bool {
                ($number)(self) == 0
            }

            fn put_always(&self, tag: u32, to: &mut $crate::record::table::Writer<'_>) {
                let number: i32 = ($number)(self);
                <i32 as $crate::record::table::Put>::put_always(&number, tag, to);
            }
        }

        impl $crate::record::table::Take for $type {
            type Slot<'a> = i32;

            fn merge(
                slot: &mut i32,
                tag: u32,
                wire_type: prost::encoding::WireType,
                from: &mut $crate::record::table::Reader<'_>,
            ) -> Result<(), $crate::record::table::Unreadable> {
                <i32 as $crate::record::table::Take>::merge(slot, tag, wire_type, from)
            }

            fn finish(slot: i32) -> Option<Self> {
                ($of_number)(slot)
            }
        }
    };
}

macro_rules! delimited {
    ($slot:ty, $read:ident; $([$($generics:tt)*] $type:ty, $bytes:expr, $of:expr;)+) => {$(
        impl $($generics)* Put for $type {
            fn is_zero(&self) -> bool {
                AsRef::<[u8]>::as_ref(&($bytes)(self)).is_empty()
            }

            fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
                to.delimited(tag, ($bytes)(self).as_ref());
            }
        }

        impl $($generics)* Take for $type {
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

delimited! { str, text;
    [] String, String::as_str, |text: &str| Some(text.to_owned());
    [] Name, Name::as_str, |text: &str| Name::parse(text).ok();
    [] CertificateName, CertificateName::as_str, |text: &str| CertificateName::parse(text).ok();
    [] Dialect, |it: &Self| it.as_str(), Dialect::from_name;
    [] DateTime, ToString::to_string, |text: &str| text.parse().ok();
    [] SortField, |it: &Self| it.as_str(), |text: &str| SortField::from_word(text).ok();
}

delimited! { [u8], delimited;
    [] Vec<u8>, Vec::as_slice, |bytes: &[u8]| Some(bytes.into());
    [<const N: usize>] [u8; N], |bytes: &Self| *bytes, |bytes: &[u8]| bytes.try_into().ok();
    [] RecordId, |id: &Self| id.to_bytes(), |id: &[u8]| Some(Self::from_bytes(id.try_into().ok()?));
    [] EventId, |id: &Self| id.to_bytes(), |id: &[u8]| Some(Self::from_bytes(id.try_into().ok()?));
    [] TraceContext, |it: &Self| it.to_bytes(), |it: &[u8]| Some(Self::from_bytes(it.try_into().ok()?));
}

/// A message that is being read: its bytes, and the result so far.
#[derive(Debug)]
pub(crate) struct Message<'a, T> {
    bytes: Cow<'a, [u8]>,
    read: Result<T, Missing>,
}

#[derive(Debug)]
enum Missing {
    Absent,
    Impossible,
}

impl<T> Default for Message<'_, T> {
    fn default() -> Self {
        Self {
            bytes: Cow::Borrowed(&[]),
            read: Err(Missing::Absent),
        }
    }
}

impl<'a, T> Message<'a, T> {
    /// Merges a further occurrence of the message.
    pub(crate) fn merge(
        &mut self,
        piece: Reader<'a>,
        read: impl Fn(Reader<'_>) -> Result<Option<T>, Unreadable>,
    ) -> Result<(), Unreadable> {
        self.bytes = match self.read {
            Err(Missing::Absent) => Cow::Borrowed(piece.rest),
            _ => Cow::Owned([&self.bytes, piece.rest].concat()),
        };
        let rest = &self.bytes;
        self.read = read(Reader { rest, ..piece })?.ok_or(Missing::Impossible);
        Ok(())
    }

    pub(crate) fn finish(self) -> Option<T> {
        self.read.ok()
    }

    fn finish_or(self, absent: impl FnOnce() -> Option<T>) -> Option<T> {
        match self.read {
            Err(Missing::Absent) => absent(),
            read => read.ok(),
        }
    }
}

macro_rules! message {
    ($type:ty) => {
        impl $crate::record::table::Put for $type {
            fn put_always(&self, tag: u32, to: &mut $crate::record::table::Writer<'_>) {
                to.message(tag, |to| {
                    $crate::record::table::Table::write(self, to);
                });
            }
        }

        impl $crate::record::table::Take for $type {
            type Slot<'a> = $crate::record::table::field::Message<'a, Self>;

            fn merge<'a>(
                slot: &mut Self::Slot<'a>,
                _tag: u32,
                wire_type: prost::encoding::WireType,
                from: &mut $crate::record::table::Reader<'a>,
            ) -> Result<(), $crate::record::table::Unreadable> {
                let read = <Self as $crate::record::table::Table>::read;
                slot.merge(from.message(wire_type)?, read)
            }

            fn finish(slot: Self::Slot<'_>) -> Option<Self> {
                slot.finish()
            }

            fn absent() -> Option<Self> {
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

impl<T: Put> Put<Wrapped> for T {
    fn is_zero(&self) -> bool {
        Put::<Plain>::is_zero(self)
    }

    fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
        to.message(tag, |to| Put::<Plain>::put(self, 1, to));
    }
}

impl<T: Take> Take<Wrapped> for T {
    type Slot<'a> = Message<'a, T>;

    fn merge<'a>(
        slot: &mut Message<'a, T>,
        _tag: u32,
        wire_type: WireType,
        from: &mut Reader<'a>,
    ) -> Result<(), Unreadable> {
        slot.merge(from.message(wire_type)?, |mut from| {
            let mut slot = T::Slot::default();
            while let Some((tag, wire_type)) = from.key()? {
                match tag {
                    1 => T::merge(&mut slot, tag, wire_type, &mut from)?,
                    _ => from.skip(tag, wire_type)?,
                }
            }
            Ok(T::finish(slot))
        })
    }

    fn finish(slot: Message<'_, T>) -> Option<Self> {
        slot.finish_or(T::absent)
    }
}

impl<T: Table> Put<Filled> for T {
    fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
        let at = to.bytes.len();
        to.message(tag, |to| self.write(to));
        if to.bytes.ends_with(&[0]) && to.bytes.len() == at + prost::encoding::key_len(tag) + 1 {
            to.bytes.truncate(at);
        }
    }
}

impl<T: Table> Take<Filled> for T {
    type Slot<'a> = Message<'a, T>;

    fn merge<'a>(
        slot: &mut Message<'a, T>,
        _tag: u32,
        wire_type: WireType,
        from: &mut Reader<'a>,
    ) -> Result<(), Unreadable> {
        slot.merge(from.message(wire_type)?, T::read)
    }

    fn finish(slot: Message<'_, T>) -> Option<Self> {
        slot.finish_or(read_empty)
    }
}

impl<T: Put> Put for &T {
    fn is_zero(&self) -> bool {
        Put::<Plain>::is_zero(*self)
    }

    fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
        Put::<Plain>::put_always(*self, tag, to);
    }
}

impl Put for &str {
    fn is_zero(&self) -> bool {
        self.is_empty()
    }

    fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
        to.delimited(tag, self.as_bytes());
    }
}

impl<T: Put> Put for &[T] {
    fn is_zero(&self) -> bool {
        self.is_empty()
    }

    fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
        for value in *self {
            Put::<Plain>::put_always(value, tag, to);
        }
    }
}

impl<T: Put> Put for Box<T> {
    fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
        Put::<Plain>::put_always(&**self, tag, to);
    }
}

impl<T: Take> Take for Box<T> {
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

impl<T: Put> Put for Option<T> {
    fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
        if let Some(value) = self {
            Put::<Plain>::put_always(value, tag, to);
        }
    }
}

impl<T: Take> Take for Option<T> {
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

impl<T: Put> Put<Blank> for Option<T> {
    fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
        if let Some(value) = self {
            Put::<Plain>::put(value, tag, to);
        }
    }
}

impl<T: Take> Take<Blank> for Option<T>
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
pub(crate) struct Many<T>(Option<Vec<T>>);

impl<T> Default for Many<T> {
    fn default() -> Self {
        Self(Some(Vec::new()))
    }
}

macro_rules! many {
    ($($type:ident $(+ $order:ident)?;)+) => {$(
        impl<T: Put> Put for $type<T> {
            fn is_zero(&self) -> bool {
                self.is_empty()
            }

            fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
                for value in self {
                    Put::<Plain>::put_always(value, tag, to);
                }
            }
        }

        impl<T: Take $(+ $order)?> Take for $type<T> {
            type Slot<'a> = Many<T>;

            fn merge(
                slot: &mut Many<T>,
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

            fn finish(slot: Many<T>) -> Option<Self> {
                Some(slot.0?.into_iter().collect())
            }
        }
    )+};
}

many! {
    Vec;
    BTreeSet + Ord;
}

impl<T: Put> Put for BTreeMap<String, T> {
    fn is_zero(&self) -> bool {
        self.is_empty()
    }

    fn put_always(&self, tag: u32, to: &mut Writer<'_>) {
        /// An empty message with field number 2.
        const EMPTY: [u8; 2] = [2 << 3 | WireType::LengthDelimited as u8, 0];

        for (key, value) in self {
            to.message(tag, |to| {
                Put::<Plain>::put(key, 1, to);
                let at = to.bytes.len();
                Put::<Plain>::put(value, 2, to);
                if to.bytes[at..] == EMPTY {
                    to.bytes.truncate(at);
                }
            });
        }
    }
}

impl<T: Take> Take for BTreeMap<String, T> {
    type Slot<'a> = BTreeMap<String, Option<T>>;

    fn merge(
        slot: &mut BTreeMap<String, Option<T>>,
        _tag: u32,
        wire_type: WireType,
        from: &mut Reader<'_>,
    ) -> Result<(), Unreadable> {
        let mut from = from.message(wire_type)?;
        let mut key = "";
        let mut value = None;
        while let Some((tag, wire_type)) = from.key()? {
            match tag {
                1 => key = from.text(wire_type)?,
                2 => {
                    let value = value.get_or_insert_default();
                    T::merge(value, tag, wire_type, &mut from)?;
                }
                _ => from.skip(tag, wire_type)?,
            }
        }
        slot.insert(key.to_owned(), value.map_or_else(T::absent, T::finish));
        Ok(())
    }

    fn finish(slot: BTreeMap<String, Option<T>>) -> Option<Self> {
        let pairs = slot.into_iter();
        pairs.map(|(key, value)| Some((key, value?))).collect()
    }
}
