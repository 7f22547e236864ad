//! JSON values.

use crate::{domain::value::Value, record::table::one_of};

one_of! { Value {
    unit 1 null Null,
    2 flag Bool, 3 number Number, 4 text Text, 5 list List as WrapperForm, 6 object Object as WrapperForm,
} }
