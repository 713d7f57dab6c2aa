// Package lookup answers questions about what holds: which effective policies are on the
// paths through an object or along which a request goes, what each policy contributes and
// loses, and where a policy has an effect. The plugin and the webhook of
// EffectivePolicyReviews ask it.
package lookup
