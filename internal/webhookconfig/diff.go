package webhookconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// differences says in what the webhooks that stand there are not what they
// should be. Webhooks of others beside ours are theirs to keep. The caBundle is
// compared where there is one to compare with, unless that is another's to write.
// Paths are never said: they may hold a secret.
func differences(want, there []webhook, bundles bool) []string {
	var out []string
	for _, w := range want {
		i := slices.IndexFunc(there, func(h webhook) bool { return h.Name == w.Name })
		if i < 0 {
			out = append(out, w.Name+" is missing")
			continue
		}
		for _, what := range webhookDifferences(w, there[i], bundles) {
			out = append(out, w.Name+": "+what)
		}
	}
	return out
}

func webhookDifferences(w, h webhook, bundles bool) []string {
	var out []string
	differ := func(differs bool, what string, args ...any) {
		if differs {
			out = append(out, fmt.Sprintf(what, args...))
		}
	}
	differ(h.ClientConfig.URL != nil || !equality.Semantic.DeepEqual(w.ClientConfig.Service, h.ClientConfig.Service),
		"clientConfig does not lead to %s by its path and port", serviceOf(w))
	differ(len(h.ClientConfig.CABundle) == 0 && (bundles || len(w.ClientConfig.CABundle) > 0), "caBundle is empty")
	differ(bundles && len(w.ClientConfig.CABundle) > 0 && len(h.ClientConfig.CABundle) > 0 && !bytes.Equal(w.ClientConfig.CABundle, h.ClientConfig.CABundle),
		"caBundle is another")
	if !equality.Semantic.DeepEqual(w.Rules, h.Rules) {
		out = append(out, diffRules(w.Rules, h.Rules))
	}
	differ(!equality.Semantic.DeepEqual(w.FailurePolicy, h.FailurePolicy), "failurePolicy is %s and not %s", jsonValue(h.FailurePolicy), jsonValue(w.FailurePolicy))
	differ(!equality.Semantic.DeepEqual(w.TimeoutSeconds, h.TimeoutSeconds), "timeoutSeconds is %s and not %s", jsonValue(h.TimeoutSeconds), jsonValue(w.TimeoutSeconds))
	differ(!equality.Semantic.DeepEqual(w.MatchPolicy, h.MatchPolicy), "matchPolicy is %s and not %s", jsonValue(h.MatchPolicy), jsonValue(w.MatchPolicy))
	differ(!equality.Semantic.DeepEqual(w.SideEffects, h.SideEffects), "sideEffects is %s and not %s", jsonValue(h.SideEffects), jsonValue(w.SideEffects))
	differ(!equality.Semantic.DeepEqual(w.ReinvocationPolicy, h.ReinvocationPolicy), "reinvocationPolicy is %s and not %s", jsonValue(h.ReinvocationPolicy), jsonValue(w.ReinvocationPolicy))
	differ(!equality.Semantic.DeepEqual(w.NamespaceSelector, h.NamespaceSelector), "namespaceSelector is another")
	differ(!equality.Semantic.DeepEqual(w.ObjectSelector, h.ObjectSelector), "objectSelector is another")
	differ(!equality.Semantic.DeepEqual(w.AdmissionReviewVersions, h.AdmissionReviewVersions), "admissionReviewVersions are others")
	differ(!equalConditions(w.MatchConditions, h.MatchConditions), "matchConditions are others")
	return out
}

// sameConditions compares conditions but for blanks, as a manifest may fold them.
func equalConditions(a, b []admissionregistrationv1.MatchCondition) bool {
	return slices.EqualFunc(a, b, func(a, b admissionregistrationv1.MatchCondition) bool {
		return a.Name == b.Name && withoutSpace(a.Expression) == withoutSpace(b.Expression)
	})
}

func withoutSpace(s string) string { return strings.Join(strings.Fields(s), "") }

// serviceOf names the Service that a webhook leads to, "" for none.
func serviceOf(h webhook) string {
	if s := h.ClientConfig.Service; s != nil {
		return s.Namespace + "/" + s.Name
	}
	return ""
}

// valueOf is a field of one value.
func jsonValue(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return strings.Trim(string(data), `"`)
}

// rulesAreOthers is said of rules that lack nothing.
const rulesDiffer = "rules are others"

// rulesDiffer names the resources that rules lack, each with its operations: for
// those, writes go unjudged.
func diffRules(want, there []admissionregistrationv1.RuleWithOperations) string {
	covered := coverage(there)
	var lacking []string
	for what := range coverage(want) {
		if !covered[what] {
			lacking = append(lacking, what)
		}
	}
	if len(lacking) == 0 {
		return rulesDiffer
	}
	slices.Sort(lacking)
	const most = 5
	more := ""
	if n := len(lacking) - most; n > 0 {
		lacking, more = lacking[:most], fmt.Sprintf(" and %d more", n)
	}
	return "rules lack " + strings.Join(lacking, ", ") + more
}

// covers lists what rules of ours name: "CREATE httproutes.gateway.networking.k8s.io".
func coverage(rules []admissionregistrationv1.RuleWithOperations) map[string]bool {
	out := make(map[string]bool)
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, operation := range rule.Operations {
					out[strings.TrimSuffix(string(operation)+" "+resource+"."+group, ".")] = true
				}
			}
		}
	}
	return out
}
