//! A picture in SVG: shapes with classes, whose colours a style sheet has for light and dark pages.

use std::fmt::{Display, Write};

/// Right and down.
pub type Position = (f64, f64);

/// A picture being drawn.
pub struct Svg {
    text: String,
}

/// What a picture begins with.
pub struct SvgHeader<'a> {
    /// Before the ids of its words, so that several pictures can be in one page.
    pub prefix: &'a str,
    /// Of the whole picture, for rules that are not for the page around it.
    pub class: &'a str,
    /// Across.
    pub width: f64,
    /// Down.
    pub height: f64,
    /// For those who hear the picture read.
    pub title: &'a str,
    /// The same at length.
    pub description: &'a str,
    /// Colours and a ground, for a picture in a file of its own; a page has them already.
    pub style: Option<&'a str>,
}

/// Which end of a text is at its point.
#[derive(Clone, Copy)]
pub enum TextAnchor {
    /// The first letter.
    Start,
    /// Half of it.
    Middle,
    /// The last letter.
    End,
}

/// A rectangle.
#[derive(Clone, Copy)]
pub struct Rect {
    /// From the left edge of the picture.
    pub left: f64,
    /// From its upper edge.
    pub top: f64,
    /// Across.
    pub width: f64,
    /// Down.
    pub height: f64,
}

impl Svg {
    /// Begins a picture.
    pub fn new(head: &SvgHeader<'_>) -> Self {
        let SvgHeader {
            prefix,
            width,
            height,
            ..
        } = head;
        let (title, description) = (escaped(head.title), escaped(head.description));
        let class = match head.class {
            "" => String::new(),
            class => format!(" class=\"{class}\""),
        };
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\"{class} viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\" aria-labelledby=\"{prefix}title {prefix}about\">\n\
             <title id=\"{prefix}title\">{title}</title>\n<desc id=\"{prefix}about\">{description}</desc>\n",
        );
        let mut svg = Self { text };
        if let Some(style) = head.style {
            svg.put(format_args!("<style>\n{style}</style>"));
            let page = Rect {
                left: 0.0,
                top: 0.0,
                width: *width,
                height: *height,
            };
            svg.rect("page", page, 0.0);
        }
        svg
    }

    /// Begins a small picture beside words that say the same.
    pub fn decoration(class: &str, width: f64, height: f64) -> Self {
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{class}\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" aria-hidden=\"true\">\n"
        );
        Self { text }
    }

    /// A rectangle with corners of this radius.
    pub fn rect(&mut self, class: &str, area: Rect, radius: f64) {
        let (x, y) = (coordinate(area.left), coordinate(area.top));
        let (width, height, rx) = (
            coordinate(area.width),
            coordinate(area.height),
            coordinate(radius),
        );
        self.put(format_args!(
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}" rx="{rx}"/>"#
        ));
    }

    /// A circle round a place.
    pub fn circle(&mut self, class: &str, (x, y): Position, radius: f64) {
        let (x, y, r) = (coordinate(x), coordinate(y), coordinate(radius));
        self.put(format_args!(
            r#"<circle class="{class}" cx="{x}" cy="{y}" r="{r}"/>"#
        ));
    }

    /// From one place to another.
    pub fn line(&mut self, class: &str, from: Position, to: Position) {
        self.path(class, &polyline(&[from, to]));
    }

    /// Along the commands of a path.
    pub fn path(&mut self, class: &str, path: &str) {
        self.put(format_args!(r#"<path class="{class}" d="{path}"/>"#));
    }

    /// A head at `tip`, as of an arrow that flies in direction `angle`.
    pub fn arrow_head(&mut self, class: &str, tip: Position, angle: f64) {
        let corner = |turn: f64| polar(tip, 8.0, angle + turn);
        let back = polar(tip, 5.0, angle + std::f64::consts::PI);
        let path = polyline(&[tip, corner(2.65), back, corner(-2.65)]) + "Z";
        self.path(class, &path);
    }

    /// Words on one line.
    pub fn text(&mut self, class: &str, (x, y): Position, anchor: TextAnchor, words: &str) {
        let anchor = match anchor {
            TextAnchor::Start => "start",
            TextAnchor::Middle => "middle",
            TextAnchor::End => "end",
        };
        let (x, y, words) = (coordinate(x), coordinate(y), escaped(words));
        self.put(format_args!(
            r#"<text class="{class}" x="{x}" y="{y}" text-anchor="{anchor}">{words}</text>"#
        ));
    }

    /// Upwards, its middle at the point.
    pub fn vertical_text(&mut self, class: &str, (x, y): Position, words: &str) {
        let (x, y, words) = (coordinate(x), coordinate(y), escaped(words));
        self.put(format_args!(
            r#"<text class="{class}" transform="translate({x} {y}) rotate(-90)" text-anchor="middle">{words}</text>"#
        ));
    }

    /// Begins a group: what is drawn until [`Svg::end_clip`] is seen through this area alone.
    pub fn begin_clip(&mut self, id: &str, area: Rect) {
        let (x, y) = (coordinate(area.left), coordinate(area.top));
        let (width, height) = (coordinate(area.width), coordinate(area.height));
        self.put(format_args!(
            r#"<clipPath id="{id}"><rect x="{x}" y="{y}" width="{width}" height="{height}"/></clipPath>"#
        ));
        self.put(format_args!(r#"<g clip-path="url(#{id})">"#));
    }

    /// Ends a group.
    pub fn end_clip(&mut self) {
        self.put("</g>");
    }

    /// The picture as text.
    pub fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }

    fn put(&mut self, element: impl Display) {
        // A string takes everything that is written to it.
        let _ = writeln!(self.text, "{element}");
    }
}

/// The path through all points.
pub fn polyline(points: &[Position]) -> String {
    let mut path = String::new();
    for (k, &(x, y)) in points.iter().enumerate() {
        let verb = if k == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{verb}{} {}", coordinate(x), coordinate(y));
    }
    path
}

/// The point at a distance from another, in direction `angle`: 0 is right, a quarter turn is down.
pub fn polar((x, y): Position, distance: f64, angle: f64) -> Position {
    (
        x + distance * libm::cos(angle),
        y + distance * libm::sin(angle),
    )
}

/// Two decimals at most: finer differences cannot be seen, and may differ between machines.
pub fn coordinate(value: f64) -> String {
    let rounded = format!("{value:.2}");
    let short = rounded.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0" } else { short }.to_owned()
}

/// Words as the text of an element, or between the quotes of an attribute. Characters that XML forbids become spaces.
pub fn escaped(words: &str) -> String {
    let mut text = String::with_capacity(words.len());
    for letter in words.chars() {
        match letter {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '"' => text.push_str("&quot;"),
            '\n' | '\t' => text.push(letter),
            '\u{FFFE}' | '\u{FFFF}' => text.push(' '),
            letter if letter.is_control() => text.push(' '),
            letter => text.push(letter),
        }
    }
    text
}
