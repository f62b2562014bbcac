// Package emend gives backends and search nodes in Go what people taught a search: corrections go to Emend, and what it
// learned comes back on a stream.
//
//   - [Feedback] submits corrections of every form, and reads what became of them.
//   - [Node] follows the stream and answers from memory, exactly: verbs, entities, prohibitions, and every other resource by
//     its key. A look-up never waits for the network.
//   - [Review] lists, explains, approves, rejects and undoes. It also orders what there is to learn by what a user knows and wants
//     to learn.
//
// What goes beyond exact look-ups (expansion, ranking, rendered prompts) is answered by a local Emend edge or by the services.
//
// Every call takes a [context.Context]. Without a deadline it has one of ten seconds, see [Connection]. A call that fails
// returns an [*Error] with code, reason and every violated field.
package emend
