// Package graph draws the effective policies of paths: targets as boxes in lanes from
// the GatewayClass to the rule of a route, policies as notes on their targets, and what
// is in effect at the end. Targets that are equal but for their names are one box with
// a count.
//
// The files, by the question that they answer:
//
//   - builder, draw, graph: from paths to boxes and notes
//   - collapse: which targets are one box
//   - lines, text: what boxes and notes say
//   - layout, svg: the SVG; flow, mermaid, dot: formats that other programs draw
package graph
