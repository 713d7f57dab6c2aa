package snapshot

import (
	"hash/maphash"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Marks describes the annotations and conditions that this server wrote on an object.
// Views do not hold it: no evaluation depends on it.
type Marks struct {
	// Hash of the marks, by MarksHash.
	Hash uint64
	// Generation of the object.
	Generation int64
	// Others counts the conditions of other writers.
	Others int
	// Deleting is set if the object is being deleted.
	Deleting bool
	// OptedOut is set if its marks must not be updated (api.LabelRefresh).
	OptedOut bool
}

// MarksOf returns the marks on an object, from its metadata and its conditions.
func MarksOf(o metav1.Object, conditions []metav1.Condition) Marks {
	m := Marks{
		Hash: MarksHash(o.GetAnnotations(), conditions), Generation: o.GetGeneration(),
		Deleting: o.GetDeletionTimestamp() != nil, OptedOut: o.GetLabels()[api.LabelRefresh] == "false",
	}
	for i := range conditions {
		if !api.IsAffected(conditions[i].Type) {
			m.Others++
		}
	}
	return m
}

// seed is random for each process: hashes are never compared across processes.
var seed = maphash.MakeSeed()

// MarksHash returns a hash of the annotations and conditions that this server writes,
// whatever their order. An empty annotation and a condition that is not True count as
// absent.
func MarksHash(annotations map[string]string, conditions []metav1.Condition) uint64 {
	var sum uint64 // independent of the order of the map
	for name, text := range annotations {
		if text != "" && api.IsOwnAnnotation(name) {
			sum += hashOf(name, text)
		}
	}
	for i := range conditions {
		if c := &conditions[i]; c.Status == metav1.ConditionTrue && api.IsAffected(c.Type) {
			sum += hashOf(c.Type, c.Reason, c.Message, strconv.FormatInt(c.ObservedGeneration, 10))
		}
	}
	return sum
}

func hashOf(parts ...string) uint64 { return maphash.String(seed, strings.Join(parts, "\x00")) }
