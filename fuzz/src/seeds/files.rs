//! Files to import, disk copies, and tool calls.

use xxhash_rust::xxh3::xxh3_128;

use super::{
    stream::{key, values},
    texts,
};

pub(super) fn csv() -> Vec<Vec<u8>> {
    texts(&[
        "type,input,choice\nphrase,set up a CSA,create_isda\nentity,J. Smith,person:jane-smith\n",
        "type,phrase,choice,user_id\nphrase,a,b,\nverbs,a,b,\nphrase,\"a\nb\",c,mia\nentity,,x,\n",
        "\u{feff}type,input,choice,system_choice\r\nprohibition,\"say \"\"no\"\"\",x,y\r\n\r\nphrase,a,b\r\n",
        "type,input,choice\nphrase,\"never closed,a\n",
    ])
}

pub(super) fn jsonl() -> Vec<Vec<u8>> {
    texts(&[
        "{\"type\":\"phrase\",\"input\":\"a\",\"choice\":\"b\"}\n\n{nonsense}\n{\"type\":\"phrase\",\"phrase\":7,\"verb\":\"b\",\"user\":null}\n",
        "{\"type\":\"entity\",\"alias\":\"\\u00e9\\ud83d\\ude00\",\"entity_id\":\"x\",\"system_choice\":\"y\"}\n",
        "{\"type\":[[[[{\"a\":1}]]]],\"input\":1e999,\"choice\":true}\n",
    ])
}

pub(super) fn yaml() -> Vec<Vec<u8>> {
    texts(&[
        "- type: phrase\n  phrase: a\n  verb: b\n- type: verbs\n  input: a\n  choice: b\n- {type: phrase, input: a, choice: b}\n",
        "- type: prohibition\n  input: |\n    wind down\n    the fund\n  choice: >-\n    delete\n    fund\n  user_id: ~\n",
        "- &row\n  type: &t phrase\n  input: \"\\x41\\u00e9\"\n  choice: 'it''s'\n- *row\n- {type: *t, input: b, choice: c}\n",
        "a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\n",
        "- &a [x,x]\n- &b [*a,*a]\n- &c [*b,*b]\n",
        "- [[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]\n",
        "---\n- type: phrase\n  input: a\n  choice: b\n...\n---\n- 7\n",
        "- <<: {type: phrase}\n  input: !!str 7\n  choice: !!binary aGk=\n",
    ])
}

pub(super) fn ubi_jsonl() -> Vec<Vec<u8>> {
    texts(&[
        "{\"query_id\":\"q1\",\"user_query\":\"red shoes\",\"client_id\":\"c1\",\"query_response_hit_ids\":[\"sku-1\",2],\
         \"timestamp\":\"2026-06-11T13:04:05.123Z\",\"query_attributes\":{}}\n\n\
         {\"_index\":\"ubi_events\",\"_source\":{\"action_name\":\"item_click\",\"query_id\":\"q1\",\"timestamp\":1781183046000,\
         \"event_attributes\":{\"object\":{\"object_id\":\"sku-1\"},\"position\":{\"ordinal\":3}}}}\n\
         {\"action_name\":\"page_exit\",\"query_id\":\"q1\"}\n",
        "\u{feff}{\"query_id\":7,\"user_query\":\"手札に戻す\",\"query_response_hit_ids\":\"[\\\"a\\\",1]\",\"timestamp\":\"yesterday\"}\r\n\
         {\"action_name\":\"click\",\"query_id\":\"q\",\"object.object_id\":\"a\",\"position\":{\"ordinal\":-1}}\n[]\n",
        "{\"query_id\":\"q\",\"user_query\":\"x\",\"query_response_hit_ids\":\"a, b ,,c\",\"timestamp\":-62135596800001}\n\
         {\"_source\":{\"_source\":{}},\"query_id\":\"q\",\"user_query\":null}\n",
    ])
}

pub(super) fn ubi_csv() -> Vec<Vec<u8>> {
    texts(&[
        "query_id,user_query,client_id,query_response_hit_ids,timestamp\nq1,\"red, shoes\",c1,\"[\"\"a\"\",\"\"b\"\"]\",2026-06-11T13:04:05Z\n\
         q2,blue,,\"a, b ,c\",1781183046000\n",
        "\u{feff}query_id,action_name,object.object_id,position.ordinal\r\nq1,click,a,1\r\n\r\nq1,page_exit,,\r\nq1,click,a,1,more\r\n",
        "\nquery_id,query_id,user_query\n,q,x\nq,,\"never closed\n",
    ])
}

pub(super) fn tool_calls() -> Vec<Vec<u8>> {
    texts(&[
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"intent_feedback","arguments":{"feedback_type":"verb_correction","original_input":"a","correct_choice":"b"}}}"#,
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#,
        r#"{"feedback_type":"phrase_mapping","original_input":"a","correct_choice":"b","context":{"topic":"x"},"user_explanation":null}"#,
        r#"{"statuses":["pending","applied"],"phrase":"a","limit":7}"#,
        r#"{"task_id":"t-17","action":"edge_correct","args":{"edge_id":"e","correct_relation":"refutes"}}"#,
        r#"{"candidate_id":"0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10","reason":"right"}"#,
        "emend://fund-admin/claims/claim%3A12?page_token=7",
    ])
}

/// Copies without a checksum, which the target adds, and complete copies.
pub(super) fn disk_copies() -> Vec<Vec<u8>> {
    let copies = [0, 1, 3].map(disk_copy);
    let mut all = copies.to_vec();
    all.extend(copies.iter().map(|body| {
        let checksum = xxh3_128(body).to_le_bytes();
        [body.as_slice(), &checksum].concat()
    }));
    all
}

pub(super) fn trust_files() -> Vec<Vec<u8>> {
    let texts = [
        "namespaces: [research]\nversion: 3\ndomains:\n  - {pattern: gov, level: government}\n  - {pattern: \"*.ac.uk\", level: academic}\n\
         blocked: [spam.example]\ndangerous_patterns: [prompt_injection]\n",
        "namespaces = [\"research\", \"default\"]\nversion = 7\nblocked = [\"Spam.Example.\", \"xn--bcher-kva.example\"]\n\
         [[domains]]\npattern = \"wikipedia.org\"\nlevel = \"low\"\n",
        "namespaces: &a [x]\nversion: 0\ndomains: [{pattern: com, level: high}]\nblocked: *a\n",
        "version = -1\nunknown = 1979-05-27T07:32:00Z\n",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

pub(super) fn prompt_files() -> Vec<Vec<u8>> {
    let texts = [
        "Summarise {{day}} for the board.\n",
        "---\ntarget: \"SUMMARIZE_DAILY\"\nvariables:\n  day: \"today\"\n  tone:\nsettings:\n  model: \"small\"\n---\n\
         Summarise {{day}} in a {{tone}} tone.\n",
        "---\r\n# ours\r\nsettings: # of the model\r\n  temperature: 0.2 # low\r\n  model: a#b\r\n---\r\n---\r\n",
        "---\nvariables:\n  day: \"\\u3042\\n\\\"\" # said\n---\n{{day}}",
        "---\nsettings:\n  a: 'b'\n---\n",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn disk_copy(count: u8) -> Vec<u8> {
    let mut bytes = b"EMENDLKG".to_vec();
    bytes.extend(2_u32.to_le_bytes());
    bytes.extend(7_u64.to_le_bytes());
    bytes.extend(1_700_000_000_000_i64.to_le_bytes());
    bytes.extend(i64::MIN.to_le_bytes());
    let installation: &[u8] = match count {
        0 => b"",
        _ => b"0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f11",
    };
    for text in [installation, b"0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10"] {
        bytes.extend(length(text));
        bytes.extend(text);
    }
    bytes.extend(9_i64.to_le_bytes());
    bytes.extend(10_u64.to_le_bytes());
    bytes.extend(u64::from(count).to_le_bytes());
    for number in 0..count {
        let resource = key();
        let mut packed = resource.kind.to_le_bytes().to_vec();
        let phrase = format!("{} {number}", resource.key);
        for text in [
            &resource.namespace,
            &phrase,
            &resource.qualifier,
            &resource.user_id,
        ] {
            packed.extend(length(text.as_bytes()));
            packed.extend(text.as_bytes());
        }
        let value = values().remove(usize::from(number) % 3);
        bytes.extend(length(&packed));
        bytes.extend(length(&value));
        bytes.extend(i64::from(number).to_le_bytes());
        bytes.extend(5_u64.to_le_bytes());
        bytes.extend(packed);
        bytes.extend(value);
    }
    bytes
}

fn length(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes()
}
