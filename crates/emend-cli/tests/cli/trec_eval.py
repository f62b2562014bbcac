"""Measures a run with trec_eval: MEASURES QRELS RUN -> one JSON object of query to measure to value."""

import json
import sys

import pytrec_eval

measures, qrels_path, run_path = sys.argv[1:]
with open(qrels_path, encoding="utf-8") as file:
    qrels = pytrec_eval.parse_qrel(file)
with open(run_path, encoding="utf-8") as file:
    run = pytrec_eval.parse_run(file)
evaluator = pytrec_eval.RelevanceEvaluator(qrels, set(measures.split(",")))
json.dump(evaluator.evaluate(run), sys.stdout)
