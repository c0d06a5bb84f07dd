//! The topics of a client: compiled once, and asked with each publication and subscription.

use fieldline_core::ports::TopicRules;

use super::patterns::WholePattern;
use super::values::{TopicRuleLists, with_common_name};

/// Compiled rules. What no expression matches is not permitted.
#[derive(Debug, Default)]
pub(super) struct CompiledRules {
    publish: Vec<WholePattern>,
    subscribe: Vec<WholePattern>,
}

impl CompiledRules {
    /// Compiles rules, with the common name of a client in them where one is given.
    ///
    /// # Errors
    /// One is no expression; all were when they were saved.
    pub(super) fn new(lists: &[&TopicRuleLists], common_name: Option<&str>) -> Result<Self, String> {
        let compile = |expression: &String| match common_name {
            Some(name) => WholePattern::new(&with_common_name(expression, name)),
            None => WholePattern::new(expression),
        };
        let mut rules = Self::default();
        for list in lists {
            for expression in list.pub_auth_rule_patterns.iter().flatten() {
                rules.publish.push(compile(expression)?);
            }
            for expression in list.sub_auth_rule_patterns.iter().flatten() {
                rules.subscribe.push(compile(expression)?);
            }
        }
        Ok(rules)
    }

    /// About the memory that they take, bytes.
    pub(super) fn cost(&self) -> usize {
        let patterns = self.publish.iter().chain(&self.subscribe);
        patterns
            .map(|pattern| size_of::<WholePattern>() + pattern.cost())
            .sum()
    }
}

impl TopicRules for CompiledRules {
    fn may_publish(&self, topic: &str) -> bool {
        self.publish.iter().any(|pattern| pattern.matches(topic))
    }

    fn may_subscribe(&self, filter: &str) -> bool {
        self.subscribe.iter().any(|pattern| pattern.matches(filter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(publish: Option<&[&str]>, subscribe: Option<&[&str]>) -> TopicRuleLists {
        let owned = |list: Option<&[&str]>| {
            list.map(|list| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
        };
        TopicRuleLists {
            pub_auth_rule_patterns: owned(publish),
            sub_auth_rule_patterns: owned(subscribe),
        }
    }

    #[test]
    fn what_no_rule_matches_is_not_permitted() {
        let own = lists(Some(&["a/.*", "b"]), Some(&[r"a/\+", "a/#"]));
        let rules = CompiledRules::new(&[&own], None).expect("rules");
        assert!(rules.may_publish("a/1") && rules.may_publish("b"));
        assert!(!rules.may_publish("b/1") && !rules.may_publish("c"));
        assert!(rules.may_subscribe("a/+") && rules.may_subscribe("a/#"));
        assert!(!rules.may_subscribe("#") && !rules.may_subscribe("a/1"));
        for nothing in [lists(None, None), lists(Some(&[]), Some(&[]))] {
            let rules = CompiledRules::new(&[&nothing], None).expect("rules");
            assert!(!rules.may_publish("a") && !rules.may_subscribe("a"));
        }
    }

    #[test]
    fn groups_of_a_certificate_add_up() {
        let (one, other) = (lists(Some(&["d/${cn}/.*"]), None), lists(Some(&["all"]), None));
        let rules = CompiledRules::new(&[&one, &other], Some("x.1")).expect("rules");
        assert!(rules.may_publish("d/x.1/a") && rules.may_publish("all"));
        assert!(!rules.may_publish("d/x-1/a"));
    }
}
