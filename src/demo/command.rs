//! What is typed into the demo.

/// One line of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command<'a> {
    /// Stops or restarts a sample, by number or name; neither is checked yet.
    Toggle(&'a str),
    State,
    Help,
    Quit,
    /// An empty line.
    Nothing,
}

impl<'a> Command<'a> {
    pub(super) fn parse(line: &'a str) -> Self {
        match line.trim() {
            "" => Self::Nothing,
            "s" | "state" => Self::State,
            "h" | "help" | "?" => Self::Help,
            "q" | "quit" | "exit" => Self::Quit,
            name => Self::Toggle(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_command_whatever_the_blanks_around_it() {
        for (line, command) in [
            ("", Command::Nothing),
            (" s\r", Command::State),
            ("h", Command::Help),
            ("\tq ", Command::Quit),
            (" 1 ", Command::Toggle("1")),
            ("pdb-new", Command::Toggle("pdb-new")),
        ] {
            assert_eq!(Command::parse(line), command);
        }
    }
}
