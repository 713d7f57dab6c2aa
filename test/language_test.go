package test

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// words are those that no one who runs Kubernetes writes, with the usual ones.
var words = []struct {
	pattern string
	use     string
}{
	{`anew`, "again, or a verb with re-"},
	{`mend(s|ed|ing)?`, "fix, repair, correct"},
	{`whoever`, "users who"},
	{`nobody|somebody`, "no one, someone, or the passive"},
	{`lobby|farewell|lookout`, "what it is"},
	{`would come of`, "results in"},
	{`is none of \[`, "must be one of"},
	{`(turn|send|sent|turned) away`, "reject, close"},
	{`judg(e|es|ed|ing|ement|ements)`, "evaluate, evaluation"},
	{`(keep|kept|keeps|is|are) in mind`, "in flight, tracked"},
	{`put right`, "fix, repair, correct"},
	{`tells? of`, "report"},
}

// identifiers are names of metaphors, in lower case, with what they stood for.
var identifiers = map[string]string{
	"door": "handler, endpoint or listener", "lobby": "connLimiter", "farewell": "drain", "lookout": "canaryRunner",
	"bystander": "followerReporter", "guest": "trackedConn", "patient": "idleConn", "useless": "flagValidation",
	"holdings": "storeCollector", "desk": "configClient", "bout": "backoff", "heed": "readMetadata",
	"comeagain": "retryLater", "turnaway": "reject", "spared": "allowSystemWrites", "flown": "pendingWrite",
	"vault": "secretStore", "sighting": "observation", "rulebook": "kindConfig", "heir": "successor",
	"misfit": "schemaViolation", "surroundings": "the pair before", "sky": "what it is", "rig": "what it is",
	"hire": "what it does", "outsider": "what it is", "judge": "evaluate", "judgement": "evaluation", "told": "reported",
	"herald": "reporter", "ground": "staleness, scope",
}

// fileNames are names of files, without their ending, in which no one would look.
var fileNames = []string{
	"alone", "board", "bout", "desk", "door", "doubles", "farewell", "ground", "heir", "herald", "hints", "holdings",
	"leftout", "lobby", "lookout", "near", "pace", "sign", "spare", "stamp", "standing", "told", "trouble", "turn",
	"untold", "vault", "why",
}

// quotations are lines that repeat what others wrote.
var quotations = []string{}

// The words of the repository are those of its field.
func TestLanguage(t *testing.T) {
	patterns := make([]*regexp.Regexp, len(words))
	for i, w := range words {
		patterns[i] = regexp.MustCompile(`(?i)\b(` + w.pattern + `)\b`)
	}
	var found []string
	for _, file := range slices.Concat(files(t, ".go"), files(t, ".md"), files(t, ".yaml"), files(t, "Makefile")) {
		if file == "test/language_test.go" || file == "CHANGELOG.md" {
			continue
		}
		n := 0
		for line := range strings.Lines(content(t, file)) {
			n++
			for i, p := range patterns {
				if word := p.FindString(line); word != "" && !slices.Contains(quotations, strings.TrimSpace(line)) {
					found = append(found, fmt.Sprintf("%s:%d: %q: use %s", file, n, word, words[i].use))
				}
			}
		}
	}
	assert.Empty(t, found)
}

// A reader finds a file and an identifier by the word that the field has for it.
func TestNamesAreThoseOfTheField(t *testing.T) {
	var found []string
	for _, file := range files(t, ".go") {
		name := strings.TrimSuffix(strings.TrimSuffix(path.Base(file), ".go"), "_test")
		if slices.Contains(fileNames, name) {
			found = append(found, fmt.Sprintf("%s: name it for the type or the concern inside", file))
		}
		ast.Inspect(parse(t, file), func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if use, ok := identifiers[strings.ToLower(id.Name)]; ok {
					found = append(found, fmt.Sprintf("%s: %s: use %s", file, id.Name, use))
				}
			}
			return true
		})
	}
	slices.Sort(found)
	assert.Empty(t, slices.Compact(found))
}
