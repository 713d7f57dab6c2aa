package manifest

import (
	"maps"
	"time"
)

// SetCreated sets the creation time of the objects that have none.
func (s *Set) SetCreated(t time.Time) {
	for _, o := range s.Objects {
		if o.created != "" {
			continue
		}
		o.created = t.UTC().Format(time.RFC3339)
		o.content = maps.Clone(o.content)
		given, _ := o.content["metadata"].(map[string]any)
		metadata := maps.Clone(given)
		if metadata == nil {
			metadata = make(map[string]any)
		}
		metadata["creationTimestamp"] = o.created
		o.content["metadata"] = metadata
	}
}
