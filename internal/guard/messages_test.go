package guard_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
)

var update = flag.Bool("update", false, "rewrite the golden file of messages")

// goldenFile holds the wording of each message once, under the test that causes it.
// To add a message, add a line "# name of the test", and run the tests with -update.
const goldenFile = "testdata/messages.golden"

// golden is the messages by test; goldenSeen is those of the tests that ran.
var golden, goldenSeen = make(map[string]string), make(map[string]string)

func TestMain(m *testing.M) {
	flag.Parse()
	text, err := os.ReadFile(goldenFile)
	if err != nil {
		panic(err)
	}
	for _, section := range strings.Split(string(text), "# ")[1:] {
		name, messages, _ := strings.Cut(section, "\n")
		golden[name] = strings.TrimRight(messages, "\n")
	}
	code := m.Run()
	all := flag.Lookup("test.run").Value.String()+flag.Lookup("test.skip").Value.String()+flag.Lookup("test.list").Value.String() == ""
	for name := range golden {
		if _, seen := goldenSeen[name]; all && code == 0 && !seen {
			fmt.Printf("%s: test %s shows no message\n", goldenFile, name)
			code = 1
		}
	}
	if *update {
		maps.Copy(golden, goldenSeen)
		var out strings.Builder
		for _, name := range slices.Sorted(maps.Keys(golden)) {
			fmt.Fprintf(&out, "# %s\n%s\n\n", name, golden[name])
		}
		if err := os.WriteFile(goldenFile, []byte(strings.TrimSuffix(out.String(), "\n")), 0o600); err != nil {
			panic(err)
		}
	}
	os.Exit(code)
}

// messages shows a decision in full, as in "Deny Invalid: message", with the short forms
// of messages.
func messages(ev *guard.Decision) []string {
	var out []string
	for _, f := range slices.Concat(ev.Denials, ev.Warnings, ev.Audits) {
		text := fmt.Sprintf("%s %s: %s", f.Action, f.Code, f.Message())
		if f.Short != "" {
			text += "\n  short: " + f.Short
		}
		out = append(out, text)
	}
	return out
}

// worded compares what a test shows users with the golden file, if that has a part for the
// test: what it shows first, and of more than four messages the first and the last.
func worded(t testing.TB, messages ...string) {
	t.Helper()
	want, ok := golden[t.Name()]
	if _, seen := goldenSeen[t.Name()]; !ok || seen || len(messages) == 0 {
		return
	}
	if n := len(messages); n > 4 {
		messages = []string{messages[0], "…", messages[n-1]}
	}
	got := strings.Join(messages, "\n")
	if goldenSeen[t.Name()] = got; !*update {
		assert.Equal(t, want, got, "%s: run with -update to rewrite it", goldenFile)
	}
}

// findings shows a decision without its prose: of each finding the action, code, rule
// and policy, and what else the message names, as in "Deny OverrideEvaded a Paint
// infra/top: Listener infra/h#http".
func findings(t testing.TB, ev *guard.Decision) []string {
	t.Helper()
	worded(t, messages(ev)...)
	var out []string
	for _, f := range slices.Concat(ev.Denials, ev.Warnings, ev.Audits) {
		out = append(out, finding(f))
	}
	return out
}

// violations returns violations with the names in their messages in place of these.
func violations(t testing.TB, all []api.Violation) []api.Violation {
	t.Helper()
	all = slices.Clone(all)
	var texts []string
	for i := range all {
		texts = append(texts, all[i].Message)
		all[i].Message = strings.Join(names(all[i].Message), ", ")
	}
	worded(t, texts...)
	return all
}

func finding(f guard.Finding) string {
	f.Request, f.ServedBy = "", "" // the golden file shows some
	head, named := fmt.Sprintf("%s %s", f.Action, f.Code), names(f.Message())
	if f.Rule != "" {
		head += " " + f.Rule
		named = slices.DeleteFunc(named, func(name string) bool { return name == f.Rule })
	}
	if f.Policy.Name != "" {
		if i := slices.Index(named, f.Policy.String()); i >= 0 {
			head += " " + named[i]
			named = slices.Delete(named, i, i+1)
		} else {
			head += fmt.Sprintf(" (%s)", f.Policy) // which the message does not name
		}
	}
	if len(named) == 0 {
		return head
	}
	return head + ": " + strings.Join(named, ", ")
}

var (
	prose   = regexp.MustCompile(`^[a-z'-]*$`)
	number  = regexp.MustCompile(`^\d+$`)
	counted = regexp.MustCompile(`^(paths?|namespaces?|rules?|routes?)$`)
	// before a name that may be in lower case letters alone
	naming  = regexp.MustCompile(`^(ClusterPolicyConstraint|GatewayClass|Namespace|PolicyProfile|section|loses?)$`)
	notName = regexp.MustCompile(`^(its|of|on|their)$`)
)

// names returns what a message names, in its order, objects once: objects such as "Gateway infra/g",
// counts such as "2 paths", fields, and values. These are its words that are not in lower
// case letters alone, those in a row together.
func names(message string) []string {
	var out, row []string
	end := func() {
		name := strings.Join(row, " ")
		known := func(old string) bool {
			return old == name && !number.MatchString(name) || strings.Contains(name, "/") && slices.Contains(strings.Fields(old), name)
		}
		if row = nil; name != "" && !slices.ContainsFunc(out, known) {
			out = append(out, name)
		}
	}
	previous := ""
	for word := range strings.FieldsSeq(message) {
		bare := strings.TrimRight(word, ".,:;")
		if strings.Count(bare, "(") < strings.Count(bare, ")") {
			bare = strings.TrimSuffix(bare, ")")
		}
		last := bare != word
		if strings.Count(bare, "(") > strings.Count(bare, ")") && strings.HasPrefix(bare, "(") {
			end()
			bare = bare[1:]
		}
		kept := !prose.MatchString(bare) || number.MatchString(previous) && counted.MatchString(bare) ||
			naming.MatchString(previous) && !notName.MatchString(bare)
		if kept {
			row = append(row, bare)
		}
		if previous = bare; !kept || last {
			end()
		}
		if last {
			previous = ""
		}
	}
	end()
	return out
}
