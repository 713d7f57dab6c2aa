// Package lookup answers questions about what holds: which effective policies are on the
// paths through an object or along which a request goes, what each policy contributes and
// loses, and where a policy has an effect. The plugin and the webhook of
// EffectivePolicyReviews ask it.
//
// The files, by the question that they answer:
//
//   - query, path, policyset: which paths and policies a question is about
//   - answer, limits, message: a whole answer, how large it may be, and why it is empty
//   - effective: the effective policies, explanations and outcomes
//   - above: policies on the gateways of a route, in kinds whose paths end there
//   - reach, reachsummary: where a policy has an effect
//   - request, served, servedgateway, servedmesh: where a request goes; notserved: why
//     nowhere
//   - assumptions: what that depends on, beyond what is known of the request
//   - restrict: what the reader may not know
package lookup
