//! `statement.html`: the guarantee of one party on one page, for a data-protection officer.

use radmm::privacy::Guarantee;
use radmm_report::{Block, Headline, Page, Section};
use radmm_study::Noise;
use radmm_study::number_format::{as_typed, brief_up, count, delta, epsilon, thousands};
use radmm_study::statement_text::ADVERSARY;

use super::{RunRecord, section, table};

/// The ε above which a factor of e^ε says nothing to anybody.
const MOST_IN_WORDS: f64 = 12.0;

pub(super) fn page(record: &RunRecord<'_>) -> Page {
    let (me, study) = (record.facts.name(), &record.facts.study);
    Page {
        title: format!("Privacy statement of {me}: study {}", study.name),
        lead: lead(record),
        headlines: headlines(record),
        sections: vec![
            section(
                "What the guarantee says",
                vec![Block::Text(in_words(record))],
            ),
            released(record),
            section(
                "What is kept, and for how long",
                vec![Block::Text(kept(record))],
            ),
            section(
                "What publishing the model means",
                vec![Block::Text(publishing(record))],
            ),
            section(
                "What it does not cover",
                vec![Block::Text(not_covered(record))],
            ),
            check(record),
        ],
        footer: format!(
            "Written by radmm {} on {}. This page is for reading; what {me} has signed is `privacy-statement.json` beside it, with \
             the same numbers.",
            env!("CARGO_PKG_VERSION"),
            record.written
        ),
    }
}

fn lead(record: &RunRecord<'_>) -> String {
    let (me, study) = (record.facts.name(), &record.facts.study);
    let rows = count(record.facts.rows, "row", "rows");
    let at = record.party.iteration();
    let (done, so_far) = match record.party.is_finished() {
        true => ("finished", String::new()),
        false => (
            "stopped before its end",
            format!(
                " {} of {} iterations are done, and the numbers below are those so far.{}",
                thousands(at as usize),
                thousands(study.algorithm.iterations as usize),
                planned(record)
            ),
        ),
    };
    let text = format!(
        "{}: {me} took part in the study **{}** with {rows} of its own. Its run has {done}.{so_far} No row left {me}; its neighbours \
         received the messages that are listed here.",
        record.date(),
        study.name
    );
    match record.no_protection() {
        Some(warning) => format!("{warning}\n\n{text}"),
        None => text,
    }
}

/// Returns what the whole study will have cost, if that was agreed on.
fn planned(record: &RunRecord<'_>) -> String {
    match record.facts.study.privacy.noise {
        Noise::Total(total) => format!(
            " The whole study was planned to cost at most ε = {}, and no more if it is resumed.",
            as_typed(total.epsilon)
        ),
        Noise::Given(_) => String::new(),
    }
}

fn headlines(record: &RunRecord<'_>) -> Vec<Headline> {
    let (me, total) = (record.facts.name(), record.total);
    let finite = total.epsilon.is_finite();
    let mut headlines = vec![Headline::new(
        "total privacy loss of this study",
        format!("ε = {}", epsilon(total.epsilon)),
        match finite {
            true => format!(
                "at δ = {}, in total, over every message that {me} sent, for {}",
                delta(total.delta),
                Guarantee::RELATION
            ),
            false => "no guarantee".to_owned(),
        },
    )];
    let spent = record.party.spent_on_rows();
    let limit = record.facts.limit.as_ref();
    let limit = limit.and_then(|limit| limit.relaxed.or(limit.pure.map(|epsilon| (epsilon, 0.0))));
    if let (Some(spent), Some((limit, _))) = (spent.last(), limit) {
        headlines.push(Headline::new(
            "all studies on these rows",
            format!("{} of {}", epsilon(spent.epsilon), as_typed(limit)),
            format!(
                "the total ε at δ = {} of everything ever asked of these rows, and the limit that {me} has set, for {}",
                delta(spent.delta),
                Guarantee::RELATION
            ),
        ));
    }
    headlines.push(Headline::new(
        "answers from rows",
        thousands(record.charges.len()),
        "all other values are functions of earlier messages, and cost nothing",
    ));
    headlines.push(match record.facts.protects() {
        true => Headline::new(
            "protects the rows?",
            "yes",
            format!("as {me} promises: nobody else can see its noise drawn"),
        ),
        false => Headline::new("protects the rows?", "no", record.facts.caveat()),
    });
    headlines
}

fn in_words(record: &RunRecord<'_>) -> String {
    let total = record.total;
    if !total.epsilon.is_finite() {
        return "There is no guarantee: answers left without noise.".to_owned();
    }
    let factor = match total.epsilon <= MOST_IN_WORDS {
        true => format!("{} times", brief_up(total.epsilon.exp())),
        false => format!("e^{} times", epsilon(total.epsilon)),
    };
    let plus = match total.delta > 0.0 {
        true => format!(", plus {}", delta(total.delta)),
        false => String::new(),
    };
    format!(
        "Suppose that somebody sees every message of {}. Whatever that person may conclude or do, its probability is at most {factor} \
         what it would be if any one row had been another{plus}. This is stated for {}; a person with several rows is protected less. \
         It is the total over the whole run, not the price of one message. It holds against an adversary who {ADVERSARY}.",
        record.facts.name(),
        Guarantee::RELATION
    )
}

fn released(record: &RunRecord<'_>) -> Section {
    let (facts, party) = (record.facts, record.party);
    let sent = party.iteration() as usize + 1;
    let width = match record.widths() {
        (least, most) if least == most => thousands(most),
        (least, most) => format!("{} to {}", thousands(least), thousands(most)),
    };
    let row = |name: &str| {
        let party = facts.study.parties.iter().find(|party| party.name == name);
        vec![
            name.to_owned(),
            thousands(sent),
            width.clone(),
            thousands(record.charges.len()),
            party.map_or(String::new(), |party| format!("`{}`", party.key)),
        ]
    };
    let rows = record.neighbours().into_iter().map(row).collect();
    let model = match party.is_finished() {
        true => {
            "The model in `model.json` follows from these messages; anybody who has them can compute it."
        }
        false => "There is no model yet.",
    };
    section(
        "What was released, to whom and how often",
        vec![
            table(
                "",
                &[
                    "recipient",
                    "messages, up to",
                    "numbers in each",
                    "from the rows, with noise",
                    "key of the recipient",
                ],
                rows,
            ),
            Block::Text(format!(
                "Each recipient got the same messages, encrypted, and over no other party. They also learn when messages were sent. {model}"
            )),
        ],
    )
}

fn kept(record: &RunRecord<'_>) -> String {
    let me = record.facts.name();
    format!(
        "{me} keeps `transcript.jsonl`, with every message that it sent and received and every charge, and its state folder, which \
         holds the account of its rows. Each neighbour keeps what it received from {me}, signed. **The program deletes none of it, and \
         no period is built in: who wants one has to agree on it with the other parties.** The guarantee does not depend on it: it \
         holds against somebody who keeps every message for ever. The state folder is as sensitive as the rows, and is not a file to \
         hand out; the transcript is."
    )
}

fn publishing(record: &RunRecord<'_>) -> String {
    let me = record.facts.name();
    match record.facts.protects() {
        true => format!(
            "The model is a function of the messages above. To publish it, to use it, or to sell it adds nothing to the total: whatever \
             anybody does with it, the guarantee above covers it. It does not make the model harmless. What it says about people in \
             general it also says about those who are in nobody’s rows, and the statement promises nothing about that. If {me}’s \
             rows are asked again, in whatever study, that adds up with this one. The rows of the other parties are covered by their own \
             statements, and not by this one."
        ),
        false => {
            "Nothing protects the rows, so that the model must be treated like the rows themselves."
                .to_owned()
        }
    }
}

fn not_covered(record: &RunRecord<'_>) -> String {
    let me = record.facts.name();
    let is_paced = record.facts.study.tick().is_ok_and(|tick| !tick.is_zero());
    let time = match is_paced {
        true => format!(
            "Answers leave on a public tick. That an answer was late, and how long {me}’s machine was busy, depends on rows"
        ),
        false => format!("When a message left depends on how long {me} computed"),
    };
    format!(
        "**The promise.** That the noise was really drawn, and that the rows are real, only {me} knows. {}.\n\n\
         **Public facts.** The number of rows ({}), the columns with their bounds and vocabularies, and the study are known to all \
         parties. The guarantee takes for granted that nobody read them off the rows.\n\n\
         **Time.** {time}, and no total here covers that.\n\n\
         **Outside of the study.** Whatever else was ever told of the same people, by {me} or others, is not in the total.",
        capital(&record.facts.caveat()),
        thousands(record.facts.rows)
    )
}

fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

fn check(record: &RunRecord<'_>) -> Section {
    let (facts, me) = (record.facts, record.facts.name());
    let model = match record.party.is_finished() {
        true => " --model model.json",
        false => "",
    };
    let code = format!(
        "radmm study show study.toml\nradmm verify --study study.toml transcript.jsonl \\\n  --statement privacy-statement.json{model}\n"
    );
    let identity = facts.study.parties[facts.node.0 as usize].key;
    let facts = vec![
        vec![
            "study, SHA-256".to_owned(),
            format!("`{}`", facts.study.sha256()),
        ],
        vec![format!("key of {me}"), format!("`{identity}`")],
    ];
    section(
        "How to check it",
        vec![
            Block::Text(
                "Anybody who has the study and the files beside this page can check them, without a key and without rows. Each command \
                 says what it cannot know."
                    .to_owned(),
            ),
            Block::Code(code),
            table("", &["what", "which"], facts),
        ],
    )
}
