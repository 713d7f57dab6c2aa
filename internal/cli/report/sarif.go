package report

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/printers"
	"overrule.dev/overrule/internal/decode"
)

const (
	// sarifSchema is the schema of SARIF 2.1.0 with its errata.
	sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	// sarifResults is the number of results of a run that GitHub shows.
	sarifResults = 5000
	// sarifDescription is the length of a rule's descriptions that GitHub reads.
	sarifDescription = 1024
	// unknownCode is the rule of a finding without a code.
	unknownCode = "Unknown"
	// sourceRoot is the base of relative files, by convention.
	sourceRoot = "%SRCROOT%"
)

// sarifText returns the findings as a SARIF 2.1.0 log with one run. Its rules are all reason
// codes, so that the index of a rule does not depend on the findings; a code without a
// documented reason has a rule of its own behind them. It contains at most 5,000 results, the
// most severe; a notification of the run gives the number of the rest.
func sarifText(r *Report) ([]byte, error) {
	rows, rules := r.rows(), slices.Clone(reasons)
	run := sarif.NewRun().WithColumnKind("unicodeCodePoints")
	shown := rows[:min(len(rows), sarifResults)]
	run.AddInvocation(invocation(len(rows) - len(shown)))
	for _, w := range shown {
		rule := slices.IndexFunc(rules, func(r reason) bool { return r.code == w.Code })
		if rule < 0 {
			rule = len(rules)
			text := cmp.Or(string(w.Code), unknownCode)
			rules = append(rules, reason{code: w.Code, level: w.Severity, subject: text, summary: text, text: text})
		}
		run.AddResult(result(w, rule))
	}
	log := sarif.NewReport().AddRun(run.WithTool(sarif.NewTool().WithDriver(r.driver(rules))))
	log.Schema = sarifSchema
	out, err := decode.Encode(log, " ")
	return append(out, '\n'), err
}

func (r *Report) driver(rules []reason) *sarif.ToolComponent {
	out := sarif.NewToolComponent().WithName("kubectl-overrule").WithInformationURI(docs + "cli")
	for _, rule := range rules {
		out.AddRule(rule.descriptor())
	}
	if r.Version != "" {
		out.WithVersion(r.Version)
	}
	if v := strings.TrimPrefix(r.Version, "v"); semanticVersion.MatchString(v) {
		out.WithSemanticVersion(v)
	}
	return out
}

// semanticVersion matches the core of a semantic version and what follows it.
var semanticVersion = regexp.MustCompile(`^\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?$`)

func (r reason) descriptor() *sarif.ReportingDescriptor {
	id := cmp.Or(string(r.code), unknownCode)
	help := sarif.NewMultiformatMessageString().WithText(r.text)
	out := sarif.NewReportingDescriptor().WithID(id).WithName(id).WithHelp(help).
		WithShortDescription(sarif.NewMultiformatMessageString().WithText(printers.Cut(r.subject, sarifDescription))).
		WithFullDescription(sarif.NewMultiformatMessageString().WithText(printers.Cut(r.summary, sarifDescription))).
		WithDefaultConfiguration(sarif.NewReportingConfiguration().WithLevel(r.level.String()))
	if r.markdown != "" {
		help.WithMarkdown(r.markdown)
		out.WithHelpURI(helpURI(r.code))
	}
	return out
}

// invocation returns the invocation of the run, with a notification if results are left
// out. It was successful: it found what there is.
func invocation(leftOut int) *sarif.Invocation {
	out := sarif.NewInvocation().WithExecutionSuccessful(true)
	if leftOut > 0 {
		verb := "are"
		if leftOut == 1 {
			verb = "is"
		}
		text := fmt.Sprintf("%s %s not in this log, which contains the %d most severe", api.Plural(leftOut, "finding"), verb, sarifResults)
		out.AddToolExecutionNotification(sarif.NewNotification().WithLevel("warning").WithMessage(sarif.NewTextMessage(text)))
	}
	return out
}

func result(w row, rule int) *sarif.Result {
	properties, policy := sarif.NewPropertyBag(), ""
	if w.Policy != nil {
		policy = w.Policy.String()
	}
	for _, p := range [][2]string{
		{"operation", w.Operation}, {"rule", w.Rule}, {"policy", policy}, {"policyKind", w.PolicyKind.String()}, {"path", w.on},
	} {
		if p[1] != "" {
			properties.Add(p[0], p[1])
		}
	}
	code := cmp.Or(string(w.Code), unknownCode)
	return sarif.NewResult().WithRuleID(code).WithRuleIndex(rule).WithLevel(w.Severity.String()).
		WithMessage(sarif.NewTextMessage(sarifMessage(cmp.Or(w.text, code)))).
		WithLocations([]*sarif.Location{location(w)}).
		WithPartialFingerprints(map[string]string{"primaryLocationLineHash": w.fingerprint, "overrule/v1": w.fingerprint}).
		WithProperties(properties)
}

func location(w row) *sarif.Location {
	out := sarif.NewLocation()
	if w.At.File != "" && w.At.File != "-" {
		artifact := sarif.NewArtifactLocation()
		switch {
		case w.file != "":
			artifact.WithURI(relativeURI(w.file)).WithURIBaseID(sourceRoot)
		case w.At.absolute():
			artifact.WithURI(fileURI(w.At.File))
		default:
			artifact.WithURI(relativeURI(path.Clean(w.At.File)))
		}
		out.WithPhysicalLocation(sarif.NewPhysicalLocation().WithArtifactLocation(artifact))
		if w.At.Line > 0 {
			out.PhysicalLocation.WithRegion(region(w.At))
		}
	}
	if w.Object != (api.Ref{}) {
		name := strings.TrimSpace(w.Object.PolicyKind().String() + " " + w.Object.Key())
		out.WithLogicalLocations([]*sarif.LogicalLocation{
			sarif.NewLogicalLocation().WithKind("resource").WithName(w.Object.Name).WithFullyQualifiedName(name),
		})
	}
	return out
}

func region(at Location) *sarif.Region {
	out := sarif.NewRegion().WithStartLine(at.Line)
	if at.Column > 0 {
		out.WithStartColumn(at.Column)
	}
	if at.Column > 0 && at.EndColumn >= at.Column {
		out.WithEndColumn(at.EndColumn)
	}
	return out
}

// sarifLink matches what a plain text message can have as a link, or as an escaped
// bracket or backslash (section 3.11.6 of SARIF).
var sarifLink = regexp.MustCompile(`\][(]|\\[][\\]`)

var (
	sarifBrackets = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`)
	sarifBraces   = strings.NewReplacer(`{`, `{{`, `}`, `}}`)
)

// sarifMessage escapes what a message has for placeholders, such as {0}, and for links, such
// as [text](1). Brackets that are no link stay as they are: not all viewers know the escape.
func sarifMessage(s string) string {
	s = sarifBraces.Replace(strings.ToValidUTF8(s, "\uFFFD"))
	if sarifLink.MatchString(s) {
		s = sarifBrackets.Replace(s)
	}
	return s
}
