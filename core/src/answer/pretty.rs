//! JSON as PuppetDB prints it for people.

/// `text` with the line breaks and blanks that PuppetDB puts into an answer under `pretty=true`:
/// members on lines of their own, elements behind one another. Values keep their bytes.
///
/// `text` is JSON; of anything else some other text is made.
pub(crate) fn pretty(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() * 2);
    // Whether each open container is an object.
    let mut open: Vec<bool> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => {
                let end = at + string_length(&text[at..]);
                out.extend_from_slice(&text[at - 1..end]);
                at = end;
            }
            b'{' | b'[' => {
                out.push(byte);
                let close = if byte == b'{' { b'}' } else { b']' };
                let blanks = text[at..]
                    .iter()
                    .take_while(|b| b.is_ascii_whitespace())
                    .count();
                if text.get(at + blanks) == Some(&close) {
                    out.extend_from_slice(&[b' ', close]);
                    at += blanks + 1;
                    continue;
                }
                open.push(byte == b'{');
                separate(&mut out, &open);
            }
            b'}' | b']' => {
                let object = open.pop() == Some(true);
                if object {
                    new_line(&mut out, &open);
                } else {
                    out.push(b' ');
                }
                out.push(byte);
            }
            b',' => {
                out.push(b',');
                separate(&mut out, &open);
            }
            b':' => out.extend_from_slice(b" : "),
            _ if byte.is_ascii_whitespace() => {}
            _ => out.push(byte),
        }
    }
    out
}

/// What stands before a member or an element.
fn separate(out: &mut Vec<u8>, open: &[bool]) {
    if open.last() == Some(&true) {
        new_line(out, open);
    } else {
        out.push(b' ');
    }
}

/// A new line, indented by the objects around it; arrays do not indent.
fn new_line(out: &mut Vec<u8>, open: &[bool]) {
    out.push(b'\n');
    let objects = open.iter().filter(|object| **object).count();
    out.resize(out.len() + 2 * objects, b' ');
}

/// The length of the rest of a string, its closing quote included.
fn string_length(text: &[u8]) -> usize {
    let mut escaped = false;
    let end = text.iter().position(|&byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    });
    end.map_or(text.len(), |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::pretty;

    /// Read off PuppetDB 7.12.1 under `pretty=true`.
    #[test]
    fn answers_look_like_puppetdbs_own() {
        let cases = [
            ("[]", "[ ]"),
            ("[ ]", "[ ]"),
            (r#"[{"a":1}]"#, "[ {\n  \"a\" : 1\n} ]"),
            (
                r#"[{"a":"x, {\"y\": [1]} \\","b":[1,{"c":{},"d":[]}]},{"a":null}]"#,
                "[ {\n  \"a\" : \"x, {\\\"y\\\": [1]} \\\\\",\n  \"b\" : [ 1, {\n    \"c\" : { },\n    \"d\" : [ ]\n  } ]\n}, {\n  \"a\" : null\n} ]",
            ),
            (r#"["a","b"]"#, r#"[ "a", "b" ]"#),
        ];
        for (text, expected) in cases {
            assert_eq!(
                String::from_utf8(pretty(text.as_bytes())).unwrap(),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_pretty_stays_as_it_is() {
        let once = pretty(br#"[{"a":[{"b":{"c":[]}}],"d":1.10}]"#);
        assert_eq!(pretty(&once), once);
    }
}
