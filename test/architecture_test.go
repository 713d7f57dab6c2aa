package test

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A packageRule says what a package is for and what it may import.
type packageRule struct {
	path    string
	job     string
	imports []string
}

// packages lists the packages of the module from top to bottom: each imports
// only packages further down. It may import those that its rule names, and what
// these may import, since their types are part of its API. A subfolder without
// a rule has that of the folder above it. Test files may import any package.
//
// The table of docs/architecture.md is generated from the list.
var packages = []packageRule{
	{"cmd/overrule", "the server's main function", []string{"internal/server"}},
	{"cmd/kubectl-overrule", "the main function of the kubectl plugin", []string{"internal/cli/commands"}},
	{"internal/server", "the process: flags, HTTPS server, shutdown, probes, metrics, tracing, wiring", []string{
		"webhook", "internal/webhookconfig", "certs", "internal/build", "internal/cliflag", "internal/controllers/annotations", "internal/rights",
		"internal/controllers/status", "internal/controllers/audit", "internal/cache",
	}},
	{"internal/cli/commands", "the commands of the kubectl plugin, on a cluster or on manifests", []string{
		"internal/build", "internal/cliflag", "internal/guard", "internal/lookup", "internal/cli/printers", "internal/cli/graph", "internal/cli/report", "internal/rights", "internal/cache", "internal/cli/manifest", "internal/cli/ui",
	}},
	{"webhook", "the admission handlers: decode, evaluate, respond, patch; concurrency limits", []string{
		"internal/inflight", "internal/controllers/annotations", "internal/webhookconfig", "internal/coordination", "internal/lookup",
	}},
	{"internal/coordination", "makes replicas evaluate as one: the Lease, forwarding, handover", []string{"internal/background"}},
	{"internal/webhookconfig", "registers the webhooks: rules, CA bundle, failure policy; checks that the API server reaches them", []string{"internal/background", "internal/guard"}},
	{"certs", "the serving certificate and the CA bundle: managed in a Secret, or from files", nil},
	{"internal/build", "build information: version, revision, libraries", []string{"internal/cliflag"}},
	{"internal/cli/graph", "pictures of effective policies: Mermaid, DOT, SVG", []string{"api"}},
	{"internal/cli/report", "the results of check, diff and violations in the formats of CI systems", []string{"internal/cli/printers"}},
	{"internal/cli/ui", "the page of the plugin in the browser: its server, its files, what it asks of a source", []string{"api"}},
	{"internal/cli/printers", "output of the plugin: table, tree, JSON, YAML", []string{"merge", "internal/decode", "api"}},
	{"internal/controllers/status", "the status conditions of PolicyProfiles and constraints", []string{"internal/cache"}},
	{"internal/cache", "fills the store from a cluster", []string{
		"internal/background", "internal/snapshot", "internal/policykind",
	}},
	{"internal/cli/manifest", "fills the store from manifest files", []string{"internal/snapshot", "internal/policykind", "internal/cli/customresource"}},
	{"internal/cli/customresource", "validates, defaults and prunes objects as the API server does, by their CustomResourceDefinition", []string{"internal/editdistance"}},
	{"internal/controllers/audit", "the background audit: violations on the paths that an observed change affects", []string{
		"internal/background", "internal/guard",
	}},
	{"internal/controllers/annotations", "the text of the annotations; updates annotations and conditions that a write to another object made stale", []string{
		"internal/background", "internal/explain",
	}},
	{"internal/inflight", "evaluates a write together with admitted writes that the store has not observed yet", []string{
		"internal/guard",
	}},
	{"internal/rights", "who is allowed to remove or change overrides, and to get objects: SubjectAccessReviews, cached for seconds", []string{"api"}},
	{"internal/lookup", "answers what holds on the paths through an object, or of a request", []string{
		"internal/explain", "internal/snapshot",
	}},
	{"internal/guard", "evaluates a change: denials, warnings, blast radius", []string{
		"internal/explain", "internal/snapshot", "internal/cel", "internal/schema", "internal/constraint",
	}},
	{"internal/schema", "validates effective specs against the schema of their kind", []string{
		"internal/effective", "internal/policykind",
	}},
	{"internal/explain", "outcomes and explanations, redacted for readers", []string{"internal/effective"}},
	{"internal/effective", "effective policies and their differences", []string{
		"merge", "internal/gateway", "internal/policykind", "internal/snapshot",
	}},
	{"internal/snapshot", "all objects as immutable views with indexes", []string{
		"internal/gateway", "internal/policykind", "internal/constraint",
	}},
	{"internal/constraint", "PolicyConstraints: which paths they select and what they require there", []string{
		"internal/cel", "internal/gateway", "internal/pattern", "api",
	}},
	{"internal/policykind", "profiles: where the targets, blocks and rules of a policy kind are", []string{
		"merge", "internal/cel", "internal/decode", "internal/ratelimit", "api",
	}},
	{"internal/ratelimit", "limits of Kuadrant's RateLimitPolicy v2 RFC: read, bind to the rules of a route, render", []string{
		"internal/gateway", "internal/decode", "internal/pattern", "internal/editdistance",
	}},
	{"internal/editdistance", "the word that is meant by a misspelled one", nil},
	{"internal/cliflag", "flags whose value is one of a list, and errors of flags in kubectl's form", nil},
	{"internal/cel", "conditions and validations: compile, cache, cost limit. The only importer of cel-go", []string{"merge", "internal/pattern"}},
	{"internal/gateway", "turns Gateway API objects into attachments and paths", []string{"api", "internal/decode", "internal/pattern"}},
	{"internal/pattern", "what compiling a regular expression costs, before it is parsed", nil},
	{"internal/decode", "decodes JSON as the API server does, in one pass", nil},
	{"internal/background", "what background work shares: pauses, recovery from panics", nil},
	{"merge", "the fold of policies. Pure: imports the standard library alone", nil},
	{"api", "the public types: CRDs, JSON output, reason codes, annotations", nil},
}

// libraries are those that only some packages may import. A longer path narrows
// a shorter one.
var libraries = []struct {
	path      string
	importers []string
}{
	{"github.com/google/cel-go", []string{"internal/cel"}},
	// webhook starts the spans, and internal/server configures where they are sent.
	{"go.opentelemetry.io", []string{"internal/server", "webhook"}},
	{"go.opentelemetry.io/otel/exporters", []string{"internal/server"}},
	{"go.opentelemetry.io/otel/sdk", []string{"internal/server"}},
}

// ruleFor returns the rule for an import path.
func ruleFor(importPath string) (packageRule, bool) {
	for folder := strings.TrimPrefix(importPath, module+"/"); folder != "."; folder = path.Dir(folder) {
		if i := slices.IndexFunc(packages, func(r packageRule) bool { return r.path == folder }); i >= 0 {
			return packages[i], true
		}
	}
	return packageRule{}, false
}

// allowed returns the rules whose packages those of the rule may import, by
// their paths, its own included.
func (r packageRule) allowed() []string {
	out := []string{r.path}
	for i := 0; i < len(out); i++ {
		rule, _ := ruleFor(out[i])
		for _, imported := range rule.imports {
			if !slices.Contains(out, imported) {
				out = append(out, imported)
			}
		}
	}
	return out
}

func TestPackagesAreListedFromTopToBottom(t *testing.T) {
	for i, rule := range packages {
		for _, imported := range rule.imports {
			below := slices.ContainsFunc(packages[i+1:], func(r packageRule) bool { return r.path == imported })
			assert.True(t, below, "%s may import %s, which is not further down in the list", rule.path, imported)
		}
	}
}

func TestPackagesImportOnlyWhatTheirRulesAllow(t *testing.T) {
	imports := map[string][]string{}
	for _, p := range program(t) {
		rule, ok := ruleFor(p.ImportPath)
		if !assert.True(t, ok, "%s has no rule: add one to packages", p.ImportPath) {
			continue
		}
		imports[rule.path] = append(imports[rule.path], rule.path)
		for _, imported := range p.Imports {
			if !ours(imported) {
				continue
			}
			other, ok := ruleFor(imported)
			assert.True(t, ok && slices.Contains(rule.allowed(), other.path), "%s imports %s, which its rule in packages does not allow", p.ImportPath, imported)
			imports[rule.path] = append(imports[rule.path], other.path)
		}
	}
	for _, rule := range packages {
		assert.Subset(t, imports[rule.path], append(rule.imports, rule.path), "the rule of %s names what does not exist or is not imported: remove it", rule.path)
	}
}

func TestLibrariesAreImportedOnlyWhereAllowed(t *testing.T) {
	for _, p := range program(t) {
		rule, _ := ruleFor(p.ImportPath)
		for _, imported := range p.Imports {
			for _, library := range libraries {
				if imported == library.path || strings.HasPrefix(imported, library.path+"/") {
					assert.Contains(t, library.importers, rule.path, "%s imports %s", p.ImportPath, imported)
				}
			}
		}
	}
}

func TestMergeImportsTheStandardLibraryAlone(t *testing.T) {
	all := listed(t)
	for _, p := range program(t) {
		if rule, _ := ruleFor(p.ImportPath); rule.path != "merge" {
			continue
		}
		for _, imported := range p.Imports {
			other, _ := ruleFor(imported)
			assert.True(t, all[imported].Standard || other.path == "merge", "%s imports %s", p.ImportPath, imported)
		}
	}
}

const (
	architecturePage = "docs/architecture.md"
	updatePage       = "go test ./test -run TestArchitecture -update"
	generatedBegin   = "<!-- packages: generated by " + updatePage + " -->\n"
	generatedEnd     = "<!-- packages: end -->\n"
)

func TestArchitecturePageShowsThePackages(t *testing.T) {
	page := content(t, architecturePage)
	before, rest, found := strings.Cut(page, generatedBegin)
	require.True(t, found, "%s has the line %s", architecturePage, generatedBegin)
	got, after, found := strings.Cut(rest, generatedEnd)
	require.True(t, found, "%s has the line %s", architecturePage, generatedEnd)
	want := "\n" + packageList() + "\n"
	if *update {
		page = before + generatedBegin + want + generatedEnd + after
		require.NoError(t, os.WriteFile("../"+architecturePage, []byte(page), 0o600))
		return
	}
	assert.Equal(t, want, got, "%s is out of date: run %s", architecturePage, updatePage)
}

func packageList() string {
	var out strings.Builder
	for _, rule := range packages {
		out.WriteString("- `" + rule.path + "`: " + rule.job + "\n")
	}
	return out.String()
}
