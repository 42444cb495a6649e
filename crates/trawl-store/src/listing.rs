//! The answer to `ListObjectVersions`, read without trust: bounded text, no document types, no unknown entities.

use quick_xml::Reader;
use quick_xml::events::{BytesRef, Event};

/// Longest value that is gathered, in bytes. Keys and version identifiers end at 1024.
const MAX_VALUE: usize = 4096;
/// Longest version identifier, in bytes.
const MAX_VERSION_ID: usize = 1024;
/// Elements within each other. The answer has three or four.
const MAX_DEPTH: usize = 16;

/// One version or delete marker of the object that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) id: String,
    pub(crate) is_marker: bool,
}

/// Where the next page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    pub(crate) key: String,
    pub(crate) version: String,
}

/// One page, newest version first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) versions: Vec<Version>,
    pub(crate) next: Option<Marker>,
}

/// `None` is the answer of a server that does not know of versions and lists objects instead.
pub(crate) fn parse(text: &str, key: &str) -> Result<Option<Page>, &'static str> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let mut answer = Answer::default();
    loop {
        match reader.read_event().map_err(|_| "is not well-formed XML")? {
            Event::Start(start) => answer.open(start.local_name().as_ref())?,
            Event::End(_) => answer.close(key)?,
            Event::Text(text) => answer.text(&text.decode().map_err(|_| "is not UTF-8")?)?,
            Event::CData(text) => answer.text(&text.decode().map_err(|_| "is not UTF-8")?)?,
            Event::GeneralRef(reference) => answer.text(resolve(&reference)?.encode_utf8(&mut [0; 4]))?,
            Event::DocType(_) => return Err("has a document type"),
            Event::Eof => return answer.finish(),
            _ => {}
        }
    }
}

fn resolve(reference: &BytesRef<'_>) -> Result<char, &'static str> {
    if reference.is_char_ref() {
        let char = reference
            .resolve_char_ref()
            .map_err(|_| "has a bad character reference")?;
        return char.ok_or("has a bad character reference");
    }
    match reference.as_ref() {
        b"lt" => Ok('<'),
        b"gt" => Ok('>'),
        b"amp" => Ok('&'),
        b"apos" => Ok('\''),
        b"quot" => Ok('"'),
        _ => Err("has an unknown entity"),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Versions,
    Objects,
    Version,
    DeleteMarker,
    Key,
    VersionId,
    IsTruncated,
    NextKeyMarker,
    NextVersionIdMarker,
    Other,
}

#[derive(Default)]
struct Answer {
    path: Vec<Place>,
    root: Option<Place>,
    value: String,
    entry_key: Option<String>,
    entry_id: Option<String>,
    entries: usize,
    versions: Vec<Version>,
    truncated: Option<String>,
    next_key: Option<String>,
    next_version: Option<String>,
}

impl Answer {
    fn open(&mut self, name: &[u8]) -> Result<(), &'static str> {
        use Place as P;
        let place = match (self.path.as_slice(), name) {
            ([], _) if self.root.is_some() => return Err("has more than one root"),
            ([], b"ListVersionsResult") => P::Versions,
            ([], b"ListBucketResult") => P::Objects,
            ([], _) => return Err("is no list of versions"),
            ([_], b"Version") => P::Version,
            ([_], b"DeleteMarker") => P::DeleteMarker,
            ([_], b"IsTruncated") => P::IsTruncated,
            ([_], b"NextKeyMarker") => P::NextKeyMarker,
            ([_], b"NextVersionIdMarker") => P::NextVersionIdMarker,
            ([_, P::Version | P::DeleteMarker], b"Key") => P::Key,
            ([_, P::Version | P::DeleteMarker], b"VersionId") => P::VersionId,
            (path, _) if path.len() >= MAX_DEPTH => return Err("is nested too deeply"),
            _ => P::Other,
        };
        if self.path.is_empty() {
            self.root = Some(place);
        }
        self.path.push(place);
        self.value.clear();
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), &'static str> {
        use Place as P;
        match self.path.last() {
            Some(P::Key | P::VersionId | P::IsTruncated | P::NextKeyMarker | P::NextVersionIdMarker) => {}
            _ => return Ok(()),
        }
        if self.value.len() + text.len() > MAX_VALUE {
            return Err("has a value that is too long");
        }
        self.value.push_str(text);
        Ok(())
    }

    fn close(&mut self, key: &str) -> Result<(), &'static str> {
        let place = self.path.pop().ok_or("is not well-formed XML")?;
        let slot = match place {
            Place::Key => &mut self.entry_key,
            Place::VersionId => &mut self.entry_id,
            Place::IsTruncated => &mut self.truncated,
            Place::NextKeyMarker => &mut self.next_key,
            Place::NextVersionIdMarker => &mut self.next_version,
            Place::Version | Place::DeleteMarker => return self.close_entry(place, key),
            _ => return Ok(()),
        };
        match slot.replace(std::mem::take(&mut self.value)) {
            None => Ok(()),
            Some(_) => Err("gives a value twice"),
        }
    }

    fn close_entry(&mut self, place: Place, key: &str) -> Result<(), &'static str> {
        self.entries += 1;
        let entry_key = self.entry_key.take().ok_or("has a version without a key")?;
        let id = self.entry_id.take();
        if entry_key != key {
            return Ok(());
        }
        let mut id = id.ok_or("has a version without an identifier")?;
        if id.is_empty() {
            // What a bucket without versions holds is its version "null"; some servers leave the name out.
            id.push_str("null");
        }
        if id.len() > MAX_VERSION_ID || !id.bytes().all(|b| b.is_ascii_graphic()) {
            return Err("has a version identifier that no request can carry");
        }
        self.versions.push(Version {
            id,
            is_marker: place == Place::DeleteMarker,
        });
        Ok(())
    }

    fn finish(self) -> Result<Option<Page>, &'static str> {
        if !self.path.is_empty() {
            return Err("is cut off");
        }
        match self.root {
            None => return Err("is empty"),
            Some(Place::Objects) if self.entries == 0 => return Ok(None),
            _ => {}
        }
        let next = match self.truncated.as_deref().map(str::trim) {
            Some("true") => Some(Marker {
                key: self.next_key.ok_or("goes on but does not say where")?,
                version: self.next_version.unwrap_or_default(),
            }),
            _ => None,
        };
        Ok(Some(Page {
            versions: self.versions,
            next,
        }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(inner: &str) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListVersionsResult \
             xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{inner}</ListVersionsResult>"
        )
    }

    fn version(name: &str, key: &str, id: &str) -> String {
        format!("<{name}><Key>{key}</Key><VersionId>{id}</VersionId><Owner><ID>1</ID></Owner></{name}>")
    }

    fn ids(text: &str, key: &str) -> Vec<(String, bool)> {
        let page = parse(text, key).unwrap().unwrap();
        page.versions.into_iter().map(|v| (v.id, v.is_marker)).collect()
    }

    #[test]
    fn versions_and_delete_markers_of_exactly_the_key_are_read_in_their_order() {
        let text = list(
            &[
                version("DeleteMarker", "a/b", "m1"),
                version("Version", "a/b", "v2"),
                version("Version", "a/bc", "other"),
                version("Version", "a/b/c", "other"),
                version("Version", "a&#47;b", "v1"),
            ]
            .concat(),
        );
        let expected = [("m1", true), ("v2", false), ("v1", false)];
        assert_eq!(ids(&text, "a/b"), expected.map(|(id, m)| (id.to_owned(), m)));
        assert_eq!(parse(&text, "a/b").unwrap().unwrap().next, None);
    }

    #[test]
    fn the_place_of_the_next_page_is_read_only_from_a_list_that_goes_on() {
        let markers = "<NextKeyMarker>a&amp;b</NextKeyMarker><NextVersionIdMarker>v7</NextVersionIdMarker>";
        let next = |truncated: &str| {
            let text = list(&format!("<IsTruncated>{truncated}</IsTruncated>{markers}"));
            parse(&text, "a").unwrap().unwrap().next
        };
        let marker = Marker {
            key: "a&b".into(),
            version: "v7".into(),
        };
        assert_eq!((next("true"), next("false")), (Some(marker), None));
        assert!(parse(&list("<IsTruncated>true</IsTruncated>"), "a").is_err());
    }

    #[test]
    fn the_null_version_has_its_name_whether_the_server_writes_it_or_not() {
        let text = list("<Version><Key>a</Key><VersionId/></Version>");
        assert_eq!(ids(&text, "a"), [("null".to_owned(), false)]);
        assert_eq!(ids(&list(&version("Version", "a", "null")), "a"), ids(&text, "a"));
    }

    #[test]
    fn a_list_of_objects_is_no_list_of_versions() {
        let objects = "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>";
        assert_eq!(parse(objects, "a"), Ok(None));
        let generations = "<ListBucketResult><Version><Key>a</Key><Generation>1</Generation></Version>\
            </ListBucketResult>";
        assert!(parse(generations, "a").is_err());
    }

    #[test]
    fn hostile_answers_are_refused() {
        let deep = list(&("<a>".repeat(64) + &"</a>".repeat(64)));
        let long = list(&version("Version", &"a".repeat(MAX_VALUE + 1), "v"));
        let bomb = "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>".to_owned()
            + &list(&version("Version", "&b;", "v"));
        let cases = [
            String::new(),
            "no markup".into(),
            "<html></html>".into(),
            deep,
            long,
            bomb,
            list("<Version><Key>&b;</Key></Version>"),
            list("<Version><Key>&#0;</Key></Version>"),
            list("<Version><VersionId>v</VersionId></Version>"),
            list("<Version><Key>a</Key></Version>"),
            list("<Version><Key>a</Key><Key>a</Key><VersionId>v</VersionId></Version>"),
            list(&version("Version", "a", "v 1")),
            list(&version("Version", "a", "v&#10;")),
            list(&version("Version", "a", &"v".repeat(MAX_VERSION_ID + 1))),
            list("").repeat(2),
            list("<Version>").replace("</ListVersionsResult>", ""),
            list("<Version></DeleteMarker>"),
        ];
        for text in cases {
            assert!(parse(&text, "a").is_err(), "{text:.80}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "(<|>|/|&|;|#|\"|Version|Key|VersionId|ListVersionsResult|[ -~é\\n]){0,60}") {
            let _ = parse(&text, "a");
            let _ = parse(&list(&text), "a");
        }

        #[test]
        fn a_list_that_is_cut_anywhere_is_never_taken_for_a_whole_one(cut in 0usize..1000) {
            let text = list(&[version("Version", "a", "v1"), version("DeleteMarker", "a", "m1")].concat());
            let cut = cut % text.len();
            prop_assert!(parse(&text[..cut], "a").is_err());
        }
    }
}
