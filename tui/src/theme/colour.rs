//! Colours that distinguish services: white text on a coloured background.

use ratatui::style::{Color, Modifier, Style};

use super::Depth;

macro_rules! colours {
    ($($colour:ident $word:literal $rgb:literal $index:literal $ansi:ident $text:ident;)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Colour {
            $(#[doc = concat!("`", $word, "`.")] $colour,)+
        }

        impl Colour {
            pub const ALL: [Self; 8] = [$(Self::$colour),+];

            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$colour => $word,)+ }
            }

            /// Returns the colour as RGB, as an index among 256, and among sixteen with a readable
            /// text colour.
            fn depth_variants(self) -> (u32, u8, Color, Color) {
                match self { $(Self::$colour => ($rgb, $index, Color::$ansi, Color::$text),)+ }
            }
        }
    };
}

colours! {
    Red "red" 0x00b3_261e 124 Red White;
    Orange "orange" 0x009a_4b00 130 LightRed Black;
    Yellow "yellow" 0x0075_5b00 94 Yellow Black;
    Green "green" 0x001b_6e3c 22 Green Black;
    Cyan "cyan" 0x000b_6a75 23 Cyan Black;
    Blue "blue" 0x001f_5fbf 25 Blue White;
    Magenta "magenta" 0x008e_2f8e 90 Magenta White;
    Grey "grey" 0x005a_5f68 240 DarkGray White;
}

impl Colour {
    #[must_use]
    pub fn find(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|colour| colour.as_str() == word)
    }

    pub(super) fn background_style(self, depth: Depth) -> Style {
        let (rgb, index, ..) = self.depth_variants();
        let (text, ground) = match depth {
            Depth::Full => (Color::from_u32(0x00ff_ffff), Color::from_u32(rgb)),
            Depth::Many | Depth::Sixteen => (Color::Indexed(231), Color::Indexed(index)),
        };
        Style::new()
            .fg(text)
            .bg(ground)
            .add_modifier(Modifier::BOLD)
    }

    pub(super) fn inverse_style(self) -> Style {
        let (.., ground, text) = self.depth_variants();
        Style::new()
            .fg(text)
            .bg(ground)
            .add_modifier(Modifier::BOLD)
    }
}
