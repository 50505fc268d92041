//! Figures and pages are well formed, complete and self-contained.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::BTreeSet;

use radmm_report::{
    Axis, AxisScale, Block, Claim, DotPlot, DotRow, Figure, Headline, Page, Panel, Point, Section,
    Series, Style, TextTable,
};

/// HTML elements without a closing tag.
const VOID: [&str; 2] = ["meta", "br"];

/// Returns the names of all elements; panics unless they are nested properly and every attribute is quoted.
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
            // Its text is not markup.
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

/// Returns the values of an attribute.
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

/// Returns the path of the only line of the data; the sample in the legend comes before it.
fn line(svg: &str) -> &str {
    let lines: Vec<&str> = svg
        .split("<path class=\"line c0 d0\" d=\"")
        .skip(1)
        .collect();
    lines.last().unwrap().split('"').next().unwrap()
}

/// Returns the corners of that path.
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
fn every_figure_is_well_formed() {
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
    for labels in attribute(&html, "aria-labelledby") {
        assert!(
            labels.split(' ').all(|id| distinct.contains(id)),
            "{labels}"
        );
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
fn pages_and_figures_fetch_nothing() {
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
fn text_is_escaped_everywhere() {
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
                Block::FoldedCode {
                    summary: evil.to_owned(),
                    code: evil.to_owned(),
                },
                Block::DotPlot(DotPlot {
                    id: evil.to_owned(),
                    title: evil.to_owned(),
                    caption: evil.to_owned(),
                    label: evil.to_owned(),
                    rows: vec![DotRow {
                        name: evil.to_owned(),
                        value: 1.0,
                        range: None,
                        text: evil.to_owned(),
                        colour: 0,
                    }],
                    references: vec![(evil.to_owned(), 1.0)],
                }),
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
fn text_may_be_bold_or_code_and_unpaired_signs_stay() {
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
fn a_logarithmic_axis_leaves_out_values_that_are_not_positive() {
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
    // Coordinates are rounded to hundredths.
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
fn a_horizontal_line_ignores_its_x() {
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
fn invalid_limits_are_replaced_by_those_of_the_data() {
    let free = figure(Style::Line, AxisScale::Log, &[1.0, 2.0]).to_svg();
    for limits in [(1.0, 1.0), (2.0, 1.0), (0.0, 1.0), (f64::NAN, 1.0)] {
        let mut figure = figure(Style::Line, AxisScale::Log, &[1.0, 2.0]);
        figure.panels[0].y.limits = Some(limits);
        assert_eq!(figure.to_svg(), free, "{limits:?}");
    }
}

#[test]
fn a_point_beyond_the_limits_is_marked_by_an_arrow_with_its_value() {
    let mut figure = figure(Style::Line, AxisScale::Linear, &[0.5, 0.6, 73.25, -2.0]);
    assert!(!figure.to_svg().contains("class=\"off\""));
    figure.panels[0].y.limits = Some((0.0, 1.0));
    let svg = figure.to_svg();
    for value in [">73.2<", ">−2.00<"] {
        assert!(svg.contains(value), "{value}");
    }
    assert_eq!(svg.matches("class=\"off\"").count(), 2);
}

#[test]
fn series_that_start_beyond_the_limits_at_the_same_point_share_an_arrow() {
    let mut figure = figure(Style::Line, AxisScale::Linear, &[9.0, 0.5, 0.6]);
    let mut other = figure.panels[0].series[0].clone();
    other.points[2].y = 0.7;
    figure.panels[0].series.push(other);
    figure.panels[0].y.limits = Some((0.0, 1.0));
    assert_eq!(figure.to_svg().matches(">9.00<").count(), 1);
}

#[test]
fn a_robust_axis_shows_most_series_and_marks_the_outlier() {
    let mut figure = figure(Style::Line, AxisScale::Linear, &[0.5, 0.4, 0.35, 0.33]);
    for (colour, y) in [(1, 0.42), (2, 0.38), (3, 700.0)] {
        let mut level = figure.panels[0].series[0].clone();
        (level.colour, level.style) = (colour, Style::Horizontal);
        level.points = vec![Point {
            x: 0.0,
            y,
            range: None,
        }];
        figure.panels[0].series.push(level);
    }
    let panel = figure.panels.remove(0).with_robust_y_axis();
    let (low, high) = panel.y.limits.unwrap();
    assert!(low <= 0.34 && (0.42..1.0).contains(&high), "{low} {high}");
    figure.panels.push(panel);
    assert!(figure.to_svg().contains(">700<"));
}

#[test]
fn a_dot_plot_has_a_marker_or_an_arrow_for_every_row() {
    let plot = support::dot_plot();
    let html = page(vec![Block::DotPlot(plot.clone())]);
    // Wide and narrow.
    assert_eq!(html.matches("class=\"mark").count(), 2 * 3);
    assert_eq!(html.matches("class=\"bar").count(), 2 * 4);
    for row in &plot.rows {
        assert!(
            html.contains(&format!(">{}</text>", row.text)),
            "{}",
            row.text
        );
    }
}

#[test]
fn headlines_come_before_the_lead() {
    let html = support::page().to_html();
    let place = |part: &str| html.find(part).unwrap();
    assert!(place("<dd class=\"value\">81.9 ± 0.3 %</dd>") < place("<div class=\"lead\">"));
}

#[test]
fn folded_code_is_there_and_closed() {
    let html = support::page().to_html();
    assert!(html.contains(
        "<details>\n<summary>The study</summary>\n<pre tabindex=\"0\"><code>name = &quot;a&quot;"
    ));
    assert!(!html.contains("<details open"));
}

#[test]
fn steps_are_constant_until_they_jump() {
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
fn claims_have_a_sign_and_a_word() {
    let claim = |holds| Claim {
        expected: "a".to_owned(),
        observed: "b".to_owned(),
        holds,
    };
    let html = page(vec![Block::Claims(
        [Some(true), Some(false), None].map(claim).to_vec(),
    )]);
    for sign in ["\"holds\">✓<", "\"does not hold\">✗<", "\"undecided\">–<"] {
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
        // The shape and whether it is filled, without its colour.
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

/// Returns the contrast ratio of two colours like `#0072b2`, as accessibility guidelines define it.
fn contrast(one: &str, other: &str) -> f64 {
    let brightness = |colour: &str| {
        let part = |k: usize| {
            let value = u8::from_str_radix(&colour[k..k + 2], 16).unwrap();
            let share = f64::from(value) / 255.0;
            if share <= 0.04045 {
                share / 12.92
            } else {
                libm::pow((share + 0.055) / 1.055, 2.4)
            }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5) + 0.05
    };
    let (one, other) = (brightness(one), brightness(other));
    one.max(other) / one.min(other)
}

#[test]
fn text_and_lines_have_contrast_on_light_and_dark_pages() {
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
        for text in ["text", ".tick"] {
            assert!(contrast(&colour(text, "fill"), &page) >= 4.5, "{text}");
        }
        // Shapes need less contrast than text.
        for k in 0..8 {
            let line = colour(&format!(".c{k}"), "stroke");
            assert!(contrast(&line, &page) >= 3.0, "{line}");
        }
    }
}
