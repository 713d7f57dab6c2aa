package report

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"

	api "overrule.dev/overrule/api/v1alpha1"
)

// fingerprints returns an identity for each finding that other changes of the manifests
// keep: a hash of the code, the object, the policy kind, the path, the rule and the other
// policy, and the number of the finding among those with an equal hash. Messages, lines
// and the indexes of a route's rules are not part of it, and the operation neither: the
// CREATE of a pull request is an UPDATE later.
func fingerprints(findings []Finding) ([]string, error) {
	seen := make(map[string]int, len(findings))
	out := make([]string, len(findings))
	for i, f := range findings {
		hash, err := identity(f)
		if err != nil {
			return nil, err
		}
		seen[hash]++
		out[i] = hash + ":" + strconv.Itoa(seen[hash])
	}
	return out, nil
}

func identity(f Finding) (string, error) {
	path := make([]api.PathElement, len(f.Path))
	for i, e := range f.Path {
		path[i] = withoutIndex(e)
	}
	data, err := json.Marshal([]any{f.Code, f.Object, f.PolicyKind, path, f.Rule, f.Policy})
	if err != nil {
		return "", fmt.Errorf("fingerprint of %s: %w", f.Object, err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16]), nil
}

var listIndex = regexp.MustCompile(`\[\d+\]`)

// withoutIndex removes what depends on the position in a list: a rule without a name is
// called after its position.
func withoutIndex(e api.PathElement) api.PathElement {
	if e.Index != nil && e.Section == "rule-"+strconv.Itoa(*e.Index+1) {
		e.Section = ""
	}
	e.Index = nil
	e.Member = listIndex.ReplaceAllString(e.Member, "")
	return e
}
