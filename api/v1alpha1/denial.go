package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// kindDenial is the kind in the details of a denial by Overrule, which no resource has.
const kindDenial = "Denial"

// DenialDetails returns the details of the Status of a denial: its findings with their
// fields, for programs. People read its message.
func DenialDetails(reasons ...Reason) *metav1.StatusDetails {
	out := &metav1.StatusDetails{Group: Group, Kind: kindDenial}
	for _, r := range reasons {
		out.Causes = append(out.Causes, metav1.StatusCause{Type: metav1.CauseType(r.Code), Field: r.Field, Message: r.Message})
	}
	return out
}

// DenialReasons returns the findings in the details of a denial by Overrule, none for those
// of another Status.
func DenialReasons(d *metav1.StatusDetails) []Reason {
	if d == nil || d.Group != Group || d.Kind != kindDenial {
		return nil
	}
	var out []Reason
	for _, c := range d.Causes {
		out = append(out, Reason{Code: ReasonCode(c.Type), Field: c.Field, Message: c.Message})
	}
	return out
}
