package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	api "overrule.dev/overrule/api/v1alpha1"
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

// SARIF returns the findings as a SARIF 2.1.0 log with one run. Its rules are all reason
// codes, so that the index of a rule does not depend on the findings. It contains at most
// 5,000 results, the most severe; a notification of the run gives the number of the rest.
func (r *Report) SARIF() ([]byte, error) {
	findings := r.sorted()
	prints, err := fingerprints(findings)
	if err != nil {
		return nil, err
	}
	shown := findings[:min(len(findings), sarifResults)]
	rules := newSARIFRules(shown)
	run := sarif.NewRun().WithTool(sarif.NewTool().WithDriver(r.driver(rules))).WithColumnKind("unicodeCodePoints")
	run.AddInvocation(invocation(len(findings) - len(shown)))
	for i, f := range shown {
		run.AddResult(result(f, rules.index[f.Code], prints[i]))
	}
	log := sarif.NewReport().AddRun(run)
	log.Schema = sarifSchema
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(log); err != nil {
		return nil, fmt.Errorf("SARIF log: %w", err)
	}
	return out.Bytes(), nil
}

func (r *Report) driver(rules sarifRules) *sarif.ToolComponent {
	out := sarif.NewToolComponent().WithName("kubectl-overrule").WithInformationURI(docs + "cli").WithRules(rules.all)
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

// sarifRules are the rules of a run and their indexes.
type sarifRules struct {
	all   []*sarif.ReportingDescriptor
	index map[api.ReasonCode]int
}

// newSARIFRules returns a rule for each reason. A code without a documented reason has a
// rule of its own behind them.
func newSARIFRules(findings []Finding) sarifRules {
	out := sarifRules{index: make(map[api.ReasonCode]int)}
	for _, r := range reasons {
		out.add(r)
	}
	for _, f := range findings {
		if _, ok := out.index[f.Code]; !ok {
			text := cmp.Or(string(f.Code), unknownCode)
			out.add(reason{code: f.Code, level: f.Severity, subject: text, summary: text, text: text})
		}
	}
	return out
}

func (s *sarifRules) add(r reason) {
	s.index[r.code] = len(s.all)
	id := cmp.Or(string(r.code), unknownCode)
	out := sarif.NewReportingDescriptor().WithID(id).WithName(id).
		WithShortDescription(multiformat(cut(r.subject, sarifDescription), "")).
		WithFullDescription(multiformat(cut(r.summary, sarifDescription), "")).
		WithHelp(multiformat(r.text, r.markdown)).
		WithDefaultConfiguration(sarif.NewReportingConfiguration().WithLevel(r.level.String()))
	if r.markdown != "" {
		out.WithHelpURI(helpURI(r.code))
	}
	s.all = append(s.all, out)
}

// multiformat returns a text of a rule: in contrast to the message of a result, it has
// neither links nor placeholders.
func multiformat(plain, markdown string) *sarif.MultiformatMessageString {
	out := sarif.NewMultiformatMessageString().WithText(plain)
	if markdown != "" {
		out.WithMarkdown(markdown)
	}
	return out
}

// invocation returns the invocation of the run, with a notification if results are left
// out. It was successful: it found what there is.
func invocation(leftOut int) *sarif.Invocation {
	out := sarif.NewInvocation().WithExecutionSuccessful(true)
	if leftOut > 0 {
		text := fmt.Sprintf("%s not in this log, which contains the %d most severe", counted(leftOut, "finding is", "findings are"), sarifResults)
		out.AddToolExecutionNotification(sarif.NewNotification().WithLevel("warning").WithMessage(sarif.NewTextMessage(text)))
	}
	return out
}

func result(f Finding, rule int, fingerprint string) *sarif.Result {
	properties := sarif.NewPropertyBag()
	for _, p := range [][2]string{
		{"operation", f.Operation}, {"rule", f.Rule}, {"policy", policyText(f.Policy)},
		{"policyKind", f.PolicyKind.String()}, {"path", api.PathText(f.Path)},
	} {
		if p[1] != "" {
			properties.Add(p[0], p[1])
		}
	}
	return sarif.NewResult().WithRuleID(cmp.Or(string(f.Code), unknownCode)).WithRuleIndex(rule).WithLevel(f.Severity.String()).
		WithMessage(sarif.NewTextMessage(sarifText(cmp.Or(f.message(), string(f.Code), unknownCode)))).
		WithLocations([]*sarif.Location{location(f)}).
		WithPartialFingerprints(map[string]string{"primaryLocationLineHash": fingerprint, "overrule/v1": fingerprint}).
		WithProperties(properties)
}

func policyText(p *api.Ref) string {
	if p == nil {
		return ""
	}
	return p.String()
}

func location(f Finding) *sarif.Location {
	out := sarif.NewLocation()
	if f.At.File != "" && f.At.File != "-" {
		out.WithPhysicalLocation(physicalLocation(f.At))
	}
	if f.Object != (api.Ref{}) {
		name := strings.TrimSpace(f.Object.PolicyKind().String() + " " + f.Object.Key())
		out.WithLogicalLocations([]*sarif.LogicalLocation{
			sarif.NewLogicalLocation().WithKind("resource").WithName(f.Object.Name).WithFullyQualifiedName(name),
		})
	}
	return out
}

func physicalLocation(at Location) *sarif.PhysicalLocation {
	artifact := sarif.NewArtifactLocation()
	file, inside := at.inRepository()
	switch {
	case inside:
		artifact.WithURI(relativeURI(file)).WithURIBaseID(sourceRoot)
	case at.absolute():
		artifact.WithURI(fileURI(at.File))
	default:
		artifact.WithURI(relativeURI(file))
	}
	out := sarif.NewPhysicalLocation().WithArtifactLocation(artifact)
	if at.Line > 0 {
		out.WithRegion(region(at))
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

// sarifText escapes what a message has for placeholders, such as {0}, and for links, such
// as [text](1). Brackets that are no link stay as they are: not all viewers know the escape.
func sarifText(s string) string {
	s = sarifBraces.Replace(strings.ToValidUTF8(s, "\uFFFD"))
	if sarifLink.MatchString(s) {
		s = sarifBrackets.Replace(s)
	}
	return s
}
