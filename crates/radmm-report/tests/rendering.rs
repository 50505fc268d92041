//! Pictures and pages are well formed, complete, and need nothing else.
#![allow(clippy::disallowed_methods, reason = "any curve will do in a test")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::BTreeSet;

use radmm_report::{
    Axis, AxisScale, Block, Claim, Figure, Headline, Page, Panel, Point, Section, Series, Style,
    TextTable,
};

/// Elements of HTML that have no end.
const VOID: [&str; 2] = ["meta", "br"];

/// The names of all elements, if they are nested properly and every attribute has quotes.
fn elements(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut rest = text.strip_prefix("<!doctype html>").unwrap_or(text);
    while let Some(start) = rest.find('<') {
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closed out of order");
            continue;
        }
        let name = tag.split([' ', '/']).next().unwrap().to_owned();
        assert!(
            !name.is_empty() && name.chars().all(char::is_alphanumeric),
            "<{tag}>"
        );
        assert_eq!(tag.matches('"').count() % 2, 0, "<{tag}>");
        if !tag.ends_with('/') && !VOID.contains(&name.as_str()) {
            open.push(name.clone());
        }
        if name == "style" {
            // Its text is no markup.
            rest = &rest[rest.find("</style>").unwrap()..];
        }
        names.push(name);
    }
    assert!(open.is_empty(), "still open: {open:?}");
    let stray = text.split('&').skip(1).find(|part| {
        let entity = part.split(';').next().unwrap();
        !["amp", "lt", "gt", "quot"].contains(&entity)
    });
    assert_eq!(stray, None, "every & begins an entity");
    names
}

/// The values of an attribute.
fn attribute<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let begin = format!(" {name}=\"");
    let parts = text.split(begin.as_str()).skip(1);
    parts.map(|part| part.split('"').next().unwrap()).collect()
}

fn axis(scale: AxisScale) -> Axis {
    Axis {
        label: "values".to_owned(),
        scale,
        limits: None,
    }
}

fn figure(style: Style, scale: AxisScale, values: &[f64]) -> Figure {
    let points = values.iter().enumerate().map(|(t, &y)| Point {
        x: t as f64,
        y,
        range: None,
    });
    Figure {
        id: "one".to_owned(),
        title: "One line".to_owned(),
        caption: String::new(),
        columns: 1,
        panels: vec![Panel {
            title: String::new(),
            x: axis(AxisScale::Linear),
            y: axis(scale),
            series: vec![Series {
                name: "line".to_owned(),
                colour: 0,
                style,
                points: points.collect(),
            }],
        }],
    }
}

/// The path of the only line of the data; a sample in the legend is another.
fn line(svg: &str) -> &str {
    let lines: Vec<&str> = svg
        .split("<path class=\"line c0 d0\" d=\"")
        .skip(1)
        .collect();
    lines.last().unwrap().split('"').next().unwrap()
}

/// Where its corners are.
fn corners(svg: &str) -> Vec<Vec<f64>> {
    line(svg)
        .split(['M', 'L'])
        .skip(1)
        .map(|at| at.split(' ').map(|n| n.parse().unwrap()).collect())
        .collect()
}

fn page(blocks: Vec<Block>) -> String {
    let page = Page {
        title: "A page".to_owned(),
        lead: String::new(),
        headlines: Vec::new(),
        sections: vec![Section {
            heading: "Part".to_owned(),
            blocks,
        }],
        footer: String::new(),
    };
    page.to_html()
}

#[test]
fn every_picture_is_well_formed() {
    for figure in support::figures() {
        let svg = figure.to_svg();
        let names = elements(&svg);
        assert_eq!(names[0], "svg");
        for name in ["title", "desc", "style", "path", "text"] {
            assert!(names.contains(&name.to_owned()), "{name} in {}", figure.id);
        }
        assert!(svg.contains("role=\"img\""));
        for place in ["x", "y", "d", "cx", "cy", "width", "height"] {
            let odd = |value: &&str| value.contains("NaN") || value.contains("inf");
            assert_eq!(attribute(&svg, place).iter().find(|v| odd(v)), None);
        }
    }
}

#[test]
fn a_page_is_well_formed_and_its_ids_are_unique() {
    let html = support::page().to_html();
    let names = elements(&html);
    assert!(!names.contains(&"script".to_owned()));
    let ids = attribute(&html, "id");
    let distinct: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), distinct.len(), "{ids:?}");
    for words in attribute(&html, "aria-labelledby") {
        assert!(words.split(' ').all(|id| distinct.contains(id)), "{words}");
    }
    for link in attribute(&html, "href") {
        assert!(distinct.contains(link.strip_prefix('#').unwrap()), "{link}");
    }
    for place in attribute(&html, "clip-path") {
        let id = place.strip_prefix("url(#").unwrap();
        assert!(distinct.contains(id.strip_suffix(')').unwrap()), "{place}");
    }
    assert!(html.contains("<html lang=\"en\">"));
}

#[test]
fn nothing_is_fetched() {
    let mut texts: Vec<String> = support::figures().iter().map(Figure::to_svg).collect();
    texts.push(support::page().to_html());
    for text in texts {
        let text = text.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        for word in ["http:", "https:", "//", "src=", "@import", "xlink", "<link"] {
            assert!(!text.contains(word), "{word}");
        }
        assert_eq!(
            text.matches("url(").count(),
            text.matches("url(#").count(),
            "only what is in the same file"
        );
    }
}

#[test]
fn words_are_escaped_everywhere() {
    let evil = "<script>alert(\"1\" & '2')</script>";
    let mut figure = figure(Style::Line, AxisScale::Linear, &[1.0, 2.0]);
    figure.id = evil.to_owned();
    figure.title = evil.to_owned();
    figure.caption = evil.to_owned();
    figure.panels[0].title = evil.to_owned();
    figure.panels[0].x.label = evil.to_owned();
    figure.panels[0].y.label = evil.to_owned();
    figure.panels[0].series[0].name = evil.to_owned();
    let html = Page {
        title: evil.to_owned(),
        lead: evil.to_owned(),
        headlines: vec![Headline {
            label: evil.to_owned(),
            value: evil.to_owned(),
            note: evil.to_owned(),
        }],
        sections: vec![Section {
            heading: evil.to_owned(),
            blocks: vec![
                Block::Text(evil.to_owned()),
                Block::Figure(figure.clone()),
                Block::Code(evil.to_owned()),
                Block::Claims(vec![Claim {
                    expected: evil.to_owned(),
                    observed: evil.to_owned(),
                    holds: None,
                }]),
                Block::Table(TextTable {
                    caption: evil.to_owned(),
                    header: vec![evil.to_owned()],
                    rows: vec![vec![evil.to_owned()]],
                    folded: true,
                }),
            ],
        }],
        footer: evil.to_owned(),
    }
    .to_html();
    for text in [html, figure.to_svg()] {
        assert!(!elements(&text).contains(&"script".to_owned()));
        assert!(text.contains("&lt;script&gt;"));
    }
}

#[test]
fn words_may_be_bold_or_code_and_signs_alone_stand_for_themselves() {
    let html = page(vec![Block::Text(
        "**bold** and `a < b`, 2 * 3, a ** b, a ` b\n\nnext".to_owned(),
    )]);
    assert!(html.contains(
        "<p><strong>bold</strong> and <code>a &lt; b</code>, 2 * 3, a ** b, a ` b</p>\n<p>next</p>"
    ));
}

#[test]
fn a_value_that_is_not_finite_breaks_the_line() {
    let whole = figure(Style::Line, AxisScale::Linear, &[1.0, 2.0, 3.0, 2.0, 1.0]).to_svg();
    assert_eq!(line(&whole).matches('M').count(), 1);
    for missing in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let broken = figure(
            Style::Line,
            AxisScale::Linear,
            &[1.0, 2.0, missing, 2.0, 1.0],
        )
        .to_svg();
        assert_eq!(line(&broken).matches('M').count(), 2);
        assert_eq!(line(&broken).matches('L').count(), 2);
    }
}

#[test]
fn a_logarithmic_axis_leaves_out_what_is_not_positive() {
    let values = [1.0, 0.1, 0.0, 0.1, -1.0, 0.01, 0.1];
    let svg = figure(Style::Line, AxisScale::Log, &values).to_svg();
    assert_eq!(line(&svg).matches('M').count(), 3);
}

#[test]
fn equal_ratios_are_equal_steps_of_a_logarithmic_axis() {
    let svg = figure(Style::Line, AxisScale::Log, &[1.0, 0.1, 0.01, 0.001]).to_svg();
    let down: Vec<f64> = corners(&svg)
        .windows(2)
        .map(|w| w[1][1] - w[0][1])
        .collect();
    // Places are rounded to hundredths.
    assert!(
        down.iter().all(|step| (step - down[0]).abs() < 0.021),
        "{down:?}"
    );
}

#[test]
fn a_panel_without_finite_values_says_so() {
    for values in [&[][..], &[f64::NAN, f64::INFINITY]] {
        for scale in [AxisScale::Linear, AxisScale::Log] {
            let svg = figure(Style::Marked, scale, values).to_svg();
            assert!(svg.contains(">no finite values</text>"));
        }
    }
    let svg = figure(Style::Marked, AxisScale::Linear, &[0.0]).to_svg();
    assert!(!svg.contains("no finite values"));
}

#[test]
fn a_level_needs_no_place_along_x() {
    let mut figure = figure(Style::Line, AxisScale::Linear, &[1.0, 2.0]);
    figure.panels[0].x.scale = AxisScale::Log;
    let mut level = figure.panels[0].series[0].clone();
    level.style = Style::Horizontal;
    level.points = vec![Point {
        x: 0.0,
        y: 50.0,
        range: None,
    }];
    figure.panels[0].series.push(level);
    let svg = figure.to_svg();
    assert!(svg.contains(">50</text>"), "the axis reaches up to it");
}

#[test]
fn limits_that_are_none_give_way_to_the_data() {
    let free = figure(Style::Line, AxisScale::Log, &[1.0, 2.0]).to_svg();
    for limits in [(1.0, 1.0), (2.0, 1.0), (0.0, 1.0), (f64::NAN, 1.0)] {
        let mut figure = figure(Style::Line, AxisScale::Log, &[1.0, 2.0]);
        figure.panels[0].y.limits = Some(limits);
        assert_eq!(figure.to_svg(), free, "{limits:?}");
    }
}

#[test]
fn stairs_are_level_until_they_jump() {
    let svg = figure(Style::Steps, AxisScale::Linear, &[0.0, 1.0, 1.0, 2.0]).to_svg();
    let corners = corners(&svg);
    for pair in corners.windows(2) {
        let level = pair[0][1] == pair[1][1];
        assert!(level || pair[0][0] == pair[1][0], "{pair:?}");
    }
    assert_eq!(corners.len(), 7);
    assert_eq!(
        corners[0][1], corners[1][1],
        "the old value holds until the next"
    );
}

#[test]
fn csv_has_every_number_to_the_last_bit() {
    let values = [
        0.1 + 0.2,
        1e-300,
        f64::NAN,
        f64::NEG_INFINITY,
        123456789.125,
    ];
    let mut figure = figure(Style::Line, AxisScale::Linear, &values);
    figure.panels[0].title = "a, \"b\"".to_owned();
    figure.panels[0].series[0].points[1].range = Some((1.0 / 3.0, 2.0 / 3.0));
    let csv = figure.to_csv();
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("panel,series,x,y,low,high"));
    let same = |text: &str, value: f64| {
        let read: f64 = text.parse().unwrap();
        assert!(read.to_bits() == value.to_bits() || read.is_nan() && value.is_nan());
    };
    for point in &figure.panels[0].series[0].points {
        let line = lines.next().unwrap();
        let fields = line.strip_prefix("\"a, \"\"b\"\"\",line,").unwrap();
        let fields: Vec<&str> = fields.split(',').collect();
        same(fields[0], point.x);
        same(fields[1], point.y);
        match point.range {
            Some((low, high)) => {
                same(fields[2], low);
                same(fields[3], high);
            }
            None => assert_eq!(fields[2..], ["", ""]),
        }
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn the_numbers_of_a_figure_are_folded_under_it() {
    let mut short = figure(Style::Line, AxisScale::Linear, &[0.25, 0.5, f64::NAN]);
    short.panels[0].series[0].points[1].range = Some((0.125, 0.75));
    let html = page(vec![Block::Figure(short)]);
    let table = html.split("<details>").nth(1).unwrap();
    let row =
        |x: &str, y: &str| format!("<td class=\"number\">{x}</td><td class=\"number\">{y}</td>");
    assert!(
        table.contains(&row("1", "0.5000 (0.1250 to 0.7500)")),
        "{table}"
    );
    assert!(table.contains(&row("2", "–")), "{table}");
}

#[test]
fn long_tables_are_thinned_and_say_so() {
    let many: Vec<f64> = (0..1001).map(f64::from).collect();
    let html = page(vec![Block::Figure(figure(
        Style::Line,
        AxisScale::Linear,
        &many,
    ))]);
    assert!(html.contains("Every 6th of 1,001 rows."));
    assert_eq!(html.matches("<tr>").count(), 1 + 167);
}

#[test]
fn contents_are_listed_when_there_are_more_than_two_sections() {
    let with = |count: usize| {
        let section = Section {
            heading: "Part".to_owned(),
            blocks: Vec::new(),
        };
        let page = Page {
            title: String::new(),
            lead: String::new(),
            headlines: Vec::new(),
            sections: vec![section; count],
            footer: String::new(),
        };
        page.to_html()
    };
    assert!(!with(2).contains("<nav"));
    assert!(with(3).contains("<li><a href=\"#part-3\">Part</a></li>"));
}

#[test]
fn claims_are_told_by_a_sign_and_a_word() {
    let claim = |holds| Claim {
        expected: "a".to_owned(),
        observed: "b".to_owned(),
        holds,
    };
    let html = page(vec![Block::Claims(
        [Some(true), Some(false), None].map(claim).to_vec(),
    )]);
    for sign in [
        "\"holds\">✓<",
        "\"does not hold\">✗<",
        "\"cannot be said\">–<",
    ] {
        assert!(html.contains(&format!("aria-label={sign}")), "{sign}");
    }
}

#[test]
fn the_legend_is_shared_when_one_panel_has_all_series() {
    let mut figure = figure(Style::Line, AxisScale::Linear, &[1.0, 2.0]);
    let names = |figure: &Figure| figure.to_svg().matches(">line</text>").count();
    figure.panels.push(figure.panels[0].clone());
    figure.columns = 2;
    assert_eq!(names(&figure), 1);
    figure.panels[1].series[0].colour = 1;
    assert_eq!(names(&figure), 2, "the same name looks different here");
}

#[test]
fn no_two_series_of_the_palette_look_the_same_without_colours() {
    let mut looks = BTreeSet::new();
    for colour in 0..8 {
        let mut figure = figure(Style::Marked, AxisScale::Linear, &[1.0]);
        figure.panels[0].series[0].colour = colour;
        let svg = figure.to_svg();
        let drawn = svg.rsplit("<g clip-path").next().unwrap();
        // The shape and whether it is filled, but not which colour of the palette it has.
        let shape: String = drawn
            .replace(&format!("f{colour}"), "")
            .replace(&format!("c{colour}"), "");
        let shape: Vec<&str> = shape.lines().filter(|part| part.contains("mark")).collect();
        assert_eq!(shape.len(), 1);
        looks.insert(shape[0].to_owned());
    }
    assert_eq!(looks.len(), 8);
}

#[test]
fn the_same_figures_give_the_same_bytes() {
    assert_eq!(support::page().to_html(), support::page().to_html());
    for (one, other) in support::figures().iter().zip(&support::figures()) {
        assert_eq!(one.to_svg(), other.to_svg());
    }
}

#[test]
fn coordinates_have_two_decimals_at_most() {
    for figure in support::figures() {
        let svg = figure.to_svg();
        for path in attribute(&svg, "d") {
            for number in path.split(['M', 'L', 'Z', ' ']).filter(|n| !n.is_empty()) {
                let decimals = number.split('.').nth(1).map_or(0, str::len);
                assert!(decimals <= 2, "{number}");
            }
        }
    }
}

/// The ratio of the brighter to the darker of two colours like `#0072b2`, as accessibility guidelines measure it.
fn contrast(one: &str, other: &str) -> f64 {
    let brightness = |colour: &str| {
        let part = |k: usize| {
            let value = u8::from_str_radix(&colour[k..k + 2], 16).unwrap();
            let share = f64::from(value) / 255.0;
            if share <= 0.04045 {
                share / 12.92
            } else {
                ((share + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5) + 0.05
    };
    let (one, other) = (brightness(one), brightness(other));
    one.max(other) / one.min(other)
}

#[test]
fn words_and_lines_stand_out_from_light_and_dark_pages() {
    let svg = support::figures()[0].to_svg();
    let (light, dark) = svg.split_once("@media").unwrap();
    for rules in [light, dark] {
        let colour = |name: &str, property: &str| {
            let rule = rules
                .split('}')
                .find(|rule| rule.contains(&format!(".fig {name} ")));
            let value = rule
                .unwrap()
                .split(&format!("{property}: "))
                .nth(1)
                .unwrap();
            value.split(';').next().unwrap().to_owned()
        };
        let page = colour(".page", "fill");
        for words in ["text", ".tick"] {
            assert!(contrast(&colour(words, "fill"), &page) >= 4.5, "{words}");
        }
        // What is not text needs less.
        for k in 0..8 {
            let line = colour(&format!(".c{k}"), "stroke");
            assert!(contrast(&line, &page) >= 3.0, "{line}");
        }
    }
}
