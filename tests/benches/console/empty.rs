//! The reference: a program with ratatui and crossterm that draws almost no content and responds to
//! keys.

use std::io::{self, stdout};

use crossterm::{
    cursor,
    event::{self, Event, KeyCode},
    execute, queue,
    terminal::{
        self, BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen,
        LeaveAlternateScreen,
    },
};
use ratatui::{Terminal, backend::CrosstermBackend, widgets::Paragraph};

/// Argument that makes this program the reference.
pub(crate) const FLAG: &str = "--be-the-empty-program";

/// Shows the number of keys pressed, until `q`.
pub(crate) fn run() {
    terminal::enable_raw_mode().expect("a terminal");
    execute!(stdout(), EnterAlternateScreen, cursor::Hide).expect("a terminal");
    show().expect("a terminal");
    execute!(stdout(), LeaveAlternateScreen, cursor::Show).expect("a terminal");
    terminal::disable_raw_mode().expect("a terminal");
}

fn show() -> io::Result<()> {
    let mut terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
    let mut count = 0_u32;
    loop {
        queue!(stdout(), BeginSynchronizedUpdate)?;
        // The symbol of the console's cursor, so that both programs are measured in the same way.
        let words = format!("\u{25b6} {count}");
        terminal.draw(|frame| frame.render_widget(Paragraph::new(words), frame.area()))?;
        execute!(stdout(), EndSynchronizedUpdate)?;
        if let Event::Key(key) = event::read()? {
            if key.code == KeyCode::Char('q') {
                return Ok(());
            }
            count += 1;
        }
    }
}
