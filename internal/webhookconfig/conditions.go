package webhookconfig

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// This file has the CEL expressions of matchConditions.

func condition(name, expression string) admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{Name: name, Expression: expression}
}

// labelsOrOwnersChanged holds if labels differ, or owners: the garbage collector deletes
// an object with its owner, and no call names the user.
var labelsOrOwnersChanged = fieldChanged("metadata", "labels") + " || " + fieldChanged("metadata", "ownerReferences")

// statusChangesMetadata excludes writes of a status that change neither labels nor owners nor
// annotations.
var statusChangesMetadata = "!has(request.subResource) || request.subResource == '' || " + labelsOrOwnersChanged + " || " + fieldChanged("metadata", "annotations")

// fieldChanged holds if a field that may be absent differs between the two objects of a
// request.
func fieldChanged(parent, field string) string {
	now, was := "object."+parent, "oldObject."+parent
	return fmt.Sprintf("has(%[1]s.%[3]s) != has(%[2]s.%[3]s) || has(%[1]s.%[3]s) && %[1]s.%[3]s != %[2]s.%[3]s", now, was, field)
}

// established holds if a CustomResourceDefinition is served.
func established(object string) string {
	return fmt.Sprintf("has(%[1]s.status) && has(%[1]s.status.conditions) && %[1]s.status.conditions.exists(c, c.type == 'Established' && c.status == 'True')", object)
}

// userIn holds if one of some users writes.
func userIn(users ...string) string { return "request.userInfo.username in " + celList(users) }

// unchangedExcept holds if a part of the two objects of a request is the same except for
// some fields.
func unchangedExcept(part string, fields ...string) string {
	now, was, except := "object"+part, "oldObject"+part, celList(fields)
	return fmt.Sprintf("%[1]s.all(k, k in %[3]s || k in %[2]s && %[1]s[k] == %[2]s[k]) && %[2]s.all(k, k in %[3]s || k in %[1]s)", now, was, except)
}

// celList returns a CEL list of strings without quotes in them.
func celList(values []string) string { return "['" + strings.Join(values, "', '") + "']" }
