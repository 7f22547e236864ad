//! The colours of each theme by meaning, as 24-bit and 256-colour values.

use ratatui::style::Color;

use super::Depth;

/// A colour as RGB, and as an index among 256.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint {
    rgb: u32,
    index: u8,
}

impl Paint {
    pub(super) fn at_depth(self, depth: Depth) -> Color {
        match depth {
            Depth::Full => Color::from_u32(self.rgb),
            Depth::Many | Depth::Sixteen => Color::Indexed(self.index),
        }
    }
}

const fn paint(rgb: u32, index: u8) -> Paint {
    Paint { rgb, index }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Palette {
    pub(super) ground: Paint,
    pub(super) selected: Paint,
    pub(super) field: Paint,
    pub(super) text: Paint,
    pub(super) dim: Paint,
    pub(super) border: Paint,
    pub(super) accent: Paint,
    pub(super) good: Paint,
    pub(super) info: Paint,
    pub(super) warning: Paint,
    pub(super) held: Paint,
    pub(super) bad: Paint,
    pub(super) critical: Paint,
    pub(super) bar: Paint,
    pub(super) bar_text: Paint,
}

pub(super) const DARK: Palette = Palette {
    ground: paint(0x0016_181d, 234),
    selected: paint(0x002b_3445, 237),
    field: paint(0x0026_2b36, 236),
    text: paint(0x00d7_dae0, 253),
    dim: paint(0x00a3_a9b5, 248),
    border: paint(0x0049_5261, 240),
    accent: paint(0x006c_b6ff, 75),
    good: paint(0x007e_c97e, 114),
    info: paint(0x0079_c7d8, 116),
    warning: paint(0x00e3_cf6b, 186),
    held: paint(0x00ff_9f4d, 215),
    bad: paint(0x00ff_7575, 210),
    critical: paint(0x00f0_7bff, 213),
    bar: paint(0x0023_2a36, 236),
    bar_text: paint(0x00d7_dae0, 253),
};

pub(super) const LIGHT: Palette = Palette {
    ground: paint(0x00fa_fafa, 231),
    selected: paint(0x00d6_e4f7, 189),
    field: paint(0x00e4_e8ee, 254),
    text: paint(0x0024_292f, 235),
    dim: paint(0x0052_5b66, 59),
    border: paint(0x00b4_bcc7, 250),
    accent: paint(0x0005_50ae, 25),
    good: paint(0x000f_5a26, 22),
    info: paint(0x000a_5470, 23),
    warning: paint(0x005f_5000, 58),
    held: paint(0x0098_3f00, 58),
    bad: paint(0x00a8_141a, 124),
    critical: paint(0x0085_0f58, 89),
    bar: paint(0x00dd_e3ec, 254),
    bar_text: paint(0x0024_292f, 235),
};

pub(super) const CONTRAST: Palette = Palette {
    ground: paint(0x0000_0000, 16),
    selected: paint(0x0000_005f, 17),
    field: paint(0x0030_3030, 236),
    text: paint(0x00ff_ffff, 231),
    dim: paint(0x00d0_d0d0, 252),
    border: paint(0x00d0_d0d0, 252),
    accent: paint(0x005f_ffff, 87),
    good: paint(0x005f_ff5f, 83),
    info: paint(0x0087_d7ff, 117),
    warning: paint(0x00ff_ff00, 226),
    held: paint(0x00ff_af5f, 215),
    bad: paint(0x00ff_afaf, 217),
    critical: paint(0x00ff_afff, 219),
    bar: paint(0x00ff_ffff, 231),
    bar_text: paint(0x0000_0000, 16),
};

pub(super) const DUSK: Palette = Palette {
    ground: paint(0x0006_303a, 235),
    selected: paint(0x0010_4a58, 237),
    field: paint(0x000c_3d49, 236),
    text: paint(0x00d3_dcdc, 253),
    dim: paint(0x00a3_b5b8, 145),
    border: paint(0x0039_6673, 240),
    accent: paint(0x006f_c3e6, 74),
    good: paint(0x00b3_c84e, 149),
    info: paint(0x008f_c4d0, 116),
    warning: paint(0x00e0_d070, 186),
    held: paint(0x00ff_ac6b, 215),
    bad: paint(0x00ff_9d8f, 216),
    critical: paint(0x00f7_a0c8, 218),
    bar: paint(0x000d_4350, 237),
    bar_text: paint(0x00d3_dcdc, 253),
};
