//! A picture in SVG: shapes with classes, whose colours `style.css` has for light and dark pages.

use std::fmt::{Display, Write};

/// Right and down.
pub type Point = (f64, f64);

/// A picture being drawn.
pub struct Svg {
    text: String,
}

/// Which end of a text is at its point.
#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A rectangle.
#[derive(Clone, Copy)]
pub struct Area {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

impl Svg {
    /// `title` and `about` are for those who hear the picture read.
    pub fn new(width: f64, height: f64, title: &str, about: &str) -> Self {
        let (title, about) = (escaped(title), escaped(about));
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\" aria-labelledby=\"title about\">\n\
             <title id=\"title\">{title}</title>\n<desc id=\"about\">{about}</desc>\n<style>\n{}</style>\n",
            include_str!("style.css"),
        );
        let mut svg = Self { text };
        let page = Area {
            left: 0.0,
            top: 0.0,
            width,
            height,
        };
        svg.area("page", page, 0.0);
        svg
    }

    pub fn area(&mut self, class: &str, area: Area, radius: f64) {
        let (x, y) = (n(area.left), n(area.top));
        let (width, height, rx) = (n(area.width), n(area.height), n(radius));
        self.put(format_args!(
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}" rx="{rx}"/>"#
        ));
    }

    pub fn circle(&mut self, class: &str, (x, y): Point, radius: f64) {
        let (x, y, r) = (n(x), n(y), n(radius));
        self.put(format_args!(
            r#"<circle class="{class}" cx="{x}" cy="{y}" r="{r}"/>"#
        ));
    }

    pub fn line(&mut self, class: &str, from: Point, to: Point) {
        self.path(class, &through(&[from, to]));
    }

    pub fn path(&mut self, class: &str, path: &str) {
        self.put(format_args!(r#"<path class="{class}" d="{path}"/>"#));
    }

    /// A head at `tip`, as of an arrow that flies in direction `angle`.
    pub fn arrow_head(&mut self, class: &str, tip: Point, angle: f64) {
        let corner = |turn: f64| polar(tip, 8.0, angle + turn);
        let back = polar(tip, 5.0, angle + std::f64::consts::PI);
        let path = through(&[tip, corner(2.65), back, corner(-2.65)]) + "Z";
        self.path(class, &path);
    }

    pub fn text(&mut self, class: &str, (x, y): Point, anchor: Anchor, words: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y, words) = (n(x), n(y), escaped(words));
        self.put(format_args!(
            r#"<text class="{class}" x="{x}" y="{y}" text-anchor="{anchor}">{words}</text>"#
        ));
    }

    /// Upwards, its middle at the point.
    pub fn upright(&mut self, class: &str, (x, y): Point, words: &str) {
        let (x, y, words) = (n(x), n(y), escaped(words));
        self.put(format_args!(
            r#"<text class="{class}" transform="translate({x} {y}) rotate(-90)" text-anchor="middle">{words}</text>"#
        ));
    }

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
pub fn through(points: &[Point]) -> String {
    let mut path = String::new();
    for (k, &(x, y)) in points.iter().enumerate() {
        let verb = if k == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{verb}{} {}", n(x), n(y));
    }
    path
}

/// The point at a distance from another, in direction `angle`: 0 is right, a quarter turn is down.
pub fn polar((x, y): Point, distance: f64, angle: f64) -> Point {
    (x + distance * angle.cos(), y + distance * angle.sin())
}

/// Two decimals at most: finer differences cannot be seen, and may differ between machines.
pub fn n(value: f64) -> String {
    let rounded = format!("{value:.2}");
    let short = rounded.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0" } else { short }.to_owned()
}

fn escaped(words: &str) -> String {
    words
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
