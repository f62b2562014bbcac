//! What counts as a click on a result.

/// Whether an action, in lower case, is a click: it is named after one, as `click`, `item_click` and `click_through` of UBI are.
pub fn is_click(action: &str) -> bool {
    action.contains("click")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_after_a_click_is_one() {
        for action in ["click", "item_click", "click_through"] {
            assert!(is_click(action), "{action}");
        }
        for action in ["", "impression", "view", "item_hover", "add_to_cart"] {
            assert!(!is_click(action), "{action}");
        }
    }
}
