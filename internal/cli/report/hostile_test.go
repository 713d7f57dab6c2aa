package report

import (
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// hostileTexts are texts that a format could read as its own syntax.
var hostileTexts = []string{
	"a|b||c\\|d", "`code` ``` `", "*a* _b_ **c** ~~d~~", "<script>alert(1)</script>", "</details></table><!--", "&lt;b&gt; &amp; &#64;",
	"[text](javascript:alert(1)) ![img](http://x.example/y.png)", "@octocat @org/team", "#1 org/repo#2 GH-3 !4 $5 &6 %7",
	"http://x.example www.x.example https://github.com/o/r/issues/1 a@b.example mailto:a@b.example ftp://x", ":tada: ::error::x",
	"::error file=a,line=1::x\n::warning::y\r##[error]z", "line\nbreak\r\nand\u2028more\tx", "\x00\x01\x1b[31mred\x7f\u0085\ufffe", "\u202egnp.exe\u2066",
	"]]>&<![CDATA[", "{0} {{1}} [a](1)", "a, b: c = %0A%25", "- [ ] task", "|---|", "> quote", "$x^2$", "\xff\xfe", "```diff\n- a\n```", strings.Repeat("x", 70000),
	"", " ", "  both  ", "\\", "\\`", "[x]: http://x.example", "<!-- overrule -->",
}

// hostile returns a report in which every text is hostile.
func hostile() *Report {
	r := &Report{Command: "check", Version: hostileTexts[0], Diagram: "flowchart LR\n  a[\"```` </details> <script>\"]\n````\n</details>\n<script>"}
	for i, text := range hostileTexts {
		object := api.Ref{Group: text, Kind: text, Namespace: text, Name: text}
		r.Objects = append(r.Objects, Object{Ref: object, Operation: text, At: Location{File: text}})
		r.Findings = append(r.Findings, Finding{
			Severity: Severity(i % 3), Code: api.ReasonCode(text), Object: object, Operation: text, Rule: text, Policy: &object, Message: text,
			At: Location{File: text, Line: i, Column: i, EndColumn: i}, Path: []api.PathElement{{Kind: text, Namespace: text, Name: text, Section: text, Client: text}},
		})
		r.Changes = append(r.Changes, Change{
			Change: api.Change{
				Object: object, Operation: text, PolicyKind: object.PolicyKind(), Path: []api.PathElement{{Kind: text, Name: text}},
				Rules: []api.RuleChange{{
					Rule: text, Before: &api.RuleValue{Value: text, From: object, Block: text},
					After: &api.RuleValue{Value: map[string]any{text: []any{text, strings.Repeat(text, 3)}}, From: object, Block: text},
				}},
				Lost: []string{text},
			},
			Causes: r.Objects[i:], Was: []api.PathElement{{Kind: text, Name: text}},
		})
	}
	return r
}
