// Package ratelimit is what Kuadrant's RFC "RateLimitPolicy v2" says of limits:
// how one is written, which rules of a route it binds to, which limit shadows
// another, and what is made of them for the gateway and for the service that
// counts. Values in, values out: it knows no policies and no paths.
package ratelimit
