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

// identifiers are names of metaphors, in lower case, with the usual ones.
var identifiers = map[string]string{
	"besides": "alsoMatches", "board": "bundlePublisher", "bout": "backoff", "bystander": "followerReporter",
	"comeagain": "retryLater", "contested": "conflictsWith", "desk": "configClient", "door": "handler, endpoint or listener",
	"farewell": "drain", "flown": "pendingWrite", "freshness": "cacheCollector", "frontdoor": "httpsServer",
	"ground": "staleness, scope", "guest": "trackedConn", "heed": "readMetadata", "heir": "successor", "herald": "reporter",
	"hire": "what it does", "holdings": "storeCollector", "judge": "evaluate", "judgement": "evaluation",
	"lobby": "connLimiter", "lookout": "canaryRunner", "mend": "normalize", "mention": "reference",
	"misfit": "schemaViolation", "outsider": "what it is", "patient": "idleConn", "rig": "what it is",
	"rulebook": "kindConfig", "sighting": "observation", "sky": "what it is", "spared": "allowSystemWrites",
	"surroundings": "what it is", "survey": "discovery", "told": "reported", "turnaway": "reject", "untold": "redactToken",
	"useless": "flagValidation", "vault": "secretStore",
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
