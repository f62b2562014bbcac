//! The check digits by which numbers are told apart.

use super::dates::groups;

/// Whether these digits, written in so many groups, are a card's number: 13 to 19 with the Luhn checksum (ISO/IEC 7812-1). 13
/// in one group that are a product's number as well are that: cards have had more digits for decades.
pub(super) fn is_card(digits: &str, groups: usize) -> bool {
    (13..=19).contains(&digits.len()) && luhn(digits) && !(groups == 1 && is_product(digits))
}

/// Whether a run of groups of digits is a Japanese Individual Number: 12 digits, together or in three groups of four, the last
/// of which is the check digit (Order of the Ministry of Internal Affairs and Communications 85 of 2014, article 5).
pub(super) fn is_my_number(run: &str) -> bool {
    let groups = groups(run);
    let is_written_so = match &groups[..] {
        [(one, _)] => one.len() == 12,
        [(one, first), (two, second), (three, _)] => {
            first == second
                && matches!(*first, " " | "-")
                && [one, two, three].iter().all(|group| group.len() == 4)
        }
        _ => false,
    };
    if !is_written_so || !run.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let digits: Vec<u32> = run.chars().filter_map(|c| c.to_digit(10)).collect();
    let Some((check, others)) = digits.split_last() else {
        return false;
    };
    // From the last digit before the check digit on: 2 to 7, then 2 to 6.
    let weights = (2..=7).chain(2..=6);
    let sum: u32 = others
        .iter()
        .rev()
        .zip(weights)
        .map(|(digit, weight)| digit * weight)
        .sum();
    let expected = match sum % 11 {
        0 | 1 => 0,
        remainder => 11 - remainder,
    };
    *check == expected
}

/// Whether these are the 13 digits of a product or a book (GTIN-13: EAN, JAN, ISBN) with their check digit.
pub(super) fn is_product(digits: &str) -> bool {
    let weighted = digits.bytes().zip([1, 3].into_iter().cycle());
    let sum: u32 = weighted
        .map(|(digit, weight)| u32::from(digit - b'0') * weight)
        .sum();
    digits.len() == 13 && sum.is_multiple_of(10)
}

/// Whether the Luhn checksum holds.
fn luhn(digits: &str) -> bool {
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(index, digit)| {
            let digit = u32::from(digit - b'0');
            match (index % 2, digit * 2) {
                (0, _) => digit,
                (_, doubled) if doubled > 9 => doubled - 9,
                (_, doubled) => doubled,
            }
        })
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::personal_data::mask;

    /// Eleven digits with the check digit behind them, as the definition has it: 11 − (Σ P·Q mod 11), 0 for 10 and 11.
    fn individual_number(eleven: [u32; 11]) -> String {
        let sum: u32 = (1..=11)
            .map(|n| eleven[11 - n] * u32::try_from(if n <= 6 { n + 1 } else { n - 5 }).unwrap())
            .sum();
        let check = match 11 - sum % 11 {
            10 | 11 => 0,
            check => check,
        };
        eleven.iter().chain([&check]).map(u32::to_string).collect()
    }

    #[test]
    fn an_individual_number_is_masked_by_its_check_digit() {
        let mut checks = std::collections::BTreeSet::new();
        for first in 1..=9 {
            for last in 0..=9 {
                let number = individual_number([first, 2, 3, 4, 5, 6, 7, 8, 9, 0, last]);
                assert_eq!(mask(&number), "[my-number]", "{number}");
                let (body, check) = number.split_at(11);
                checks.insert(check.to_owned());
                let other = (check.parse::<u32>().unwrap() + 1) % 10;
                let wrong = format!("{body}{other}");
                assert_eq!(mask(&wrong), wrong, "another check digit");
            }
        }
        assert_eq!(checks.len(), 10, "each check digit was tried: {checks:?}");
        for (text, masked) in [
            ("マイナンバーは123456789018です", "マイナンバーは[my-number]です"),
            ("1234-5678-9018", "[my-number]"),
            ("１２３４　５６７８　９０１８", "[my-number]"),
            // With other digits it is taken for a telephone number, as any three groups are.
            ("1234-5678-9012", "[phone]"),
        ] {
            assert_eq!(mask(text), masked);
        }
    }

    #[test]
    fn numbers_of_products_and_books_are_none_of_a_card() {
        for text in [
            "4006381333931",
            "JAN 4901234567894",
            "978-3-16-148410-0",
            "9783161484100",
        ] {
            assert_eq!(mask(text), text);
        }
        // The checksum of cards holds for this one, too.
        let both = (0..1_000)
            .map(|number| format!("490123456{number:04}"))
            .find(|digits| luhn(digits) && is_product(digits))
            .unwrap();
        assert_eq!(mask(&both), both);
        assert_eq!(mask("4222222222222"), "[card]");
    }
}
