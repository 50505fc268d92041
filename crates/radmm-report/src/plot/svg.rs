//! SVG images: shapes with CSS classes, whose colours a style sheet defines for light and dark pages.

use std::fmt::{Display, Write};

/// A pair of coordinates: right and down.
pub type Position = (f64, f64);

/// An image that is being drawn.
pub struct Svg {
    text: String,
}

/// The size and the description of an image.
pub struct SvgHeader<'a> {
    /// The beginning of its ids, so that several images can be in one page.
    pub prefix: &'a str,
    /// The class of the image, for rules that do not apply to the page around it.
    pub class: &'a str,
    /// The width.
    pub width: f64,
    /// The height.
    pub height: f64,
    /// A short description, for screen readers.
    pub title: &'a str,
    /// A long description, for screen readers.
    pub description: &'a str,
    /// The style sheet of an image in a file of its own, which also gets a background. A page has both already.
    pub style: Option<&'a str>,
}

/// The part of a text that is at its position.
#[derive(Clone, Copy)]
pub enum TextAnchor {
    /// The beginning.
    Start,
    /// The middle.
    Middle,
    /// The end.
    End,
}

/// A rectangle.
#[derive(Clone, Copy)]
pub struct Rect {
    /// The distance from the left edge of the image.
    pub left: f64,
    /// The distance from its upper edge.
    pub top: f64,
    /// The width.
    pub width: f64,
    /// The height.
    pub height: f64,
}

impl Svg {
    /// Begins an image.
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

    /// Begins a small image beside text that says the same.
    pub fn decoration(class: &str, width: f64, height: f64) -> Self {
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{class}\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" aria-hidden=\"true\">\n"
        );
        Self { text }
    }

    /// Draws a rectangle with corners of this radius.
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

    /// Draws a circle around a position.
    pub fn circle(&mut self, class: &str, (x, y): Position, radius: f64) {
        let (x, y, r) = (coordinate(x), coordinate(y), coordinate(radius));
        self.put(format_args!(
            r#"<circle class="{class}" cx="{x}" cy="{y}" r="{r}"/>"#
        ));
    }

    /// Draws a straight line.
    pub fn line(&mut self, class: &str, from: Position, to: Position) {
        self.path(class, &polyline(&[from, to]));
    }

    /// Draws a path from its commands.
    pub fn path(&mut self, class: &str, path: &str) {
        self.put(format_args!(r#"<path class="{class}" d="{path}"/>"#));
    }

    /// Draws the head of an arrow that points at `tip` in direction `angle`.
    pub fn arrow_head(&mut self, class: &str, tip: Position, angle: f64) {
        let corner = |turn: f64| polar(tip, 8.0, angle + turn);
        let back = polar(tip, 5.0, angle + std::f64::consts::PI);
        let path = polyline(&[tip, corner(2.65), back, corner(-2.65)]) + "Z";
        self.path(class, &path);
    }

    /// Writes a line of text.
    pub fn text(&mut self, class: &str, (x, y): Position, anchor: TextAnchor, text: &str) {
        let anchor = match anchor {
            TextAnchor::Start => "start",
            TextAnchor::Middle => "middle",
            TextAnchor::End => "end",
        };
        let (x, y, text) = (coordinate(x), coordinate(y), escaped(text));
        self.put(format_args!(
            r#"<text class="{class}" x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>"#
        ));
    }

    /// Writes a line of text from bottom to top, its middle at the position.
    pub fn vertical_text(&mut self, class: &str, (x, y): Position, text: &str) {
        let (x, y, text) = (coordinate(x), coordinate(y), escaped(text));
        self.put(format_args!(
            r#"<text class="{class}" transform="translate({x} {y}) rotate(-90)" text-anchor="middle">{text}</text>"#
        ));
    }

    /// Begins a group of shapes that are clipped to an area; [`Svg::end_clip`] ends it.
    pub fn begin_clip(&mut self, id: &str, area: Rect) {
        let (x, y) = (coordinate(area.left), coordinate(area.top));
        let (width, height) = (coordinate(area.width), coordinate(area.height));
        self.put(format_args!(
            r#"<clipPath id="{id}"><rect x="{x}" y="{y}" width="{width}" height="{height}"/></clipPath>"#
        ));
        self.put(format_args!(r#"<g clip-path="url(#{id})">"#));
    }

    /// Ends the group that [`Svg::begin_clip`] began.
    pub fn end_clip(&mut self) {
        self.put("</g>");
    }

    /// Returns the image as text.
    pub fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }

    fn put(&mut self, element: impl Display) {
        // A string takes everything that is written to it.
        let _ = writeln!(self.text, "{element}");
    }
}

/// Returns the commands of a path through all points.
pub fn polyline(points: &[Position]) -> String {
    let mut path = String::new();
    for (k, &(x, y)) in points.iter().enumerate() {
        let verb = if k == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{verb}{} {}", coordinate(x), coordinate(y));
    }
    path
}

/// Returns the point at a distance from another in direction `angle`: 0 is right, a quarter turn is down.
pub fn polar((x, y): Position, distance: f64, angle: f64) -> Position {
    (
        x + distance * libm::cos(angle),
        y + distance * libm::sin(angle),
    )
}

/// Formats a coordinate with at most two decimals: finer differences cannot be seen, and may differ between machines.
pub fn coordinate(value: f64) -> String {
    let rounded = format!("{value:.2}");
    let short = rounded.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0" } else { short }.to_owned()
}

/// Returns a text escaped for an element or a quoted attribute. Characters that XML forbids become spaces.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(letter),
            '\u{FFFE}' | '\u{FFFF}' => escaped.push(' '),
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}
