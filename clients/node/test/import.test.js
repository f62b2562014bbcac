// Importing more rows than one request holds, and giving it up.
'use strict'

const assert = require('node:assert/strict')
const { after, before, describe, test } = require('node:test')

const { Review } = require('@emend/client')
const { Pair } = require('./support/pair.js')

describe('an import', () => {
  let pair, review

  before(async () => {
    pair = await Pair.start()
    review = new Review(pair.learning, { namespace: 'shop' })
  })
  after(async () => {
    review?.close()
    await pair?.stop()
  })

  const row = phrase => ({ correction: { phraseMapping: { phrase, verb: 'walk' } } })

  async function* rows(name, count) {
    for (let number = 1; number <= count; number += 1) yield row(`${name} ${number}`)
  }

  async function learned(prefix) {
    const found = []
    for await (const { key } of review.resources({ keyPrefix: prefix })) found.push(key.key)
    return found.length
  }

  test('sends rows as they are made, and says which are bad', async () => {
    const all = async function* () {
      yield* rows('phrase', 1_200)
      yield row('')
    }
    const said = await review.import(all(), { mode: 'SKIP_INVALID', reason: 'a test' })
    assert.deepEqual([said.appliedCount, said.rejectedCount], [1_200, 1])
    assert.deepEqual([said.errors[0].line, said.errors[0].description.length > 0], [1_201, true])
    assert.equal(await learned('phrase'), 1_200)
  })

  test('imports nothing if making a row fails', async () => {
    const broken = async function* () {
      yield* rows('half', 800)
      throw new Error('the source is broken')
    }
    await assert.rejects(review.import(broken()), /the source is broken/)
    await assert.rejects(review.import([row('one')], { namespace: '' }), { code: 'INVALID_ARGUMENT' })
    assert.equal(await learned('half'), 0)
  })

  test('is no call of one request, and no other is an import', async () => {
    await assert.rejects(review.call('emend.learning.v1.ResourceService/ImportResources', {}), /stream of requests/)
    await assert.rejects(review.upload('emend.learning.v1.ResourceService/PutResource', []), /takes one request/)
  })
})
