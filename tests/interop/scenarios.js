/**
 * What the peers do, so that their oplogs hold all that the package writes.
 *
 * Values are bytes; those that begin with a brace are JSON, of which `apply` obeys some fields.
 */

/** How many rounds of appending the scenarios with forks have. */
const ROUNDS = 6

/** Lengths of values around those where a compact-encoding uint takes more bytes. */
const LENGTHS = [1, 0xfb, 0xfc, 0xfd, 0xfe, 0xff, 0x100, 0xffff, 0x10000, 300_000]

/**
 * Each scenario's name, the oldest version of messages whose release can do it, what it gives to the autobase beside the
 * usual, and its play.
 */
export const SCENARIOS = [
  { name: 'forks', since: 0, handlers: {}, play: forks },
  { name: 'values', since: 0, handlers: {}, play: values },
  { name: 'members', since: 1, handlers: {}, play: members },
  { name: 'optimistic', since: 1, handlers: { optimistic: true }, play: optimistic },
  { name: 'encrypted', since: 2, handlers: { encryptionKey: Buffer.alloc(32, 'seglake') }, play: forks }
]

/** Two views, so that checkpoints sign two, and reads of both, so that there is something to trace. */
export const HANDLERS = {
  valueEncoding: 'binary',
  open: (store) => ({ log: store.get('log'), tally: store.get('tally') }),
  apply
}

async function apply(nodes, { log, tally }, host) {
  for (const { value, from } of nodes) {
    // What the writer itself sees as an empty value is null to all others: neither may change a view.
    if (value === null || value.length === 0) continue
    const { add, indexer, remove, acknowledge, read = [], count } = value[0] === 0x7b ? JSON.parse(value) : {}
    if (add) await host.addWriter(Buffer.from(add, 'hex'), { indexer })
    if (remove) await host.removeWriter(Buffer.from(remove, 'hex'))
    // The first checkpoints come before anything is in a view, and so have none of a view.
    if (add || remove) continue
    if (acknowledge) await host.ackWriter(from.key)
    for (const index of read) {
      for (const view of [log, tally]) if (index < view.length) await view.get(index)
    }
    if (count) await tally.append(Buffer.from(String(tally.length)))
    await log.append(value.subarray(0, 64))
  }
}

/** Five writers, three of which index, append at the same time, alone and in groups, and merge. */
async function forks(network, random) {
  await network.join('a', 'b', 'c', 'd', 'e')
  await add(network, 'a', 'b', 'c')
  await add(network, 'a', 'd', { indexer: false })
  await add(network, 'a', 'e', { indexer: false })
  for (let round = 0; round < ROUNDS; round++) {
    for (const name of network.names) {
      for (let n = random(3); n > 0; n--) await network.base(name).append(message(name, round, random))
      if (random(4) === 0) {
        const batch = Array.from({ length: 2 + random(4) }, () => message(name, round, random))
        await network.base(name).append(batch)
      }
    }
    if (round % 3 === 0) await network.sync(['a', 'd'])
    if (round % 3 === 1) await network.sync(['b', 'c', 'e'])
    if (round % 3 === 2) await network.index(['a', 'b', 'c'])
    if (round % 4 === 3) await network.sync()
  }
  await network.sync()
  await network.index(['a', 'b', 'c'])
}

/** Values of every length that matters, none at all, and batches of few and of many. */
async function values(network, random) {
  await network.join('a', 'b', 'c')
  await add(network, 'a', 'b', 'c')
  const several = [bytes(5, random), null, Buffer.alloc(0), bytes(0x100, random)]
  for (const name of network.names) {
    const base = network.base(name)
    for (const length of LENGTHS) await base.append(bytes(length, random))
    await base.append(null)
    await base.append(Buffer.alloc(0))
    await base.append(several)
    await network.index()
  }
  await network.base('b').append(Array.from({ length: 300 }, (_, n) => bytes(1 + (n % 3), random)))
  await network.index()
}

/** A writer comes, goes, and comes back as an indexer; an indexer goes; another comes. */
async function members(network, random) {
  await network.join('a', 'b', 'c', 'd')
  await add(network, 'a', 'b')
  await add(network, 'a', 'c', { indexer: false })
  await everyoneAppends(network, ['a', 'b', 'c'], random)
  await network.index(['a', 'b'])

  await network.base('b').append(json({ remove: network.key('c') }))
  await network.sync()
  await everyoneAppends(network, ['a', 'b'], random)
  await network.index(['a', 'b'])

  await add(network, 'b', 'c')
  await everyoneAppends(network, ['a', 'b', 'c'], random)
  await network.index(['a', 'b', 'c'])

  await network.base('a').append(json({ remove: network.key('b') }))
  await network.sync()
  await network.index(['a', 'c'])
  await add(network, 'c', 'd')
  await everyoneAppends(network, ['a', 'c', 'd'], random)
  await network.index(['a', 'c', 'd'])
}

/** One who was never added appends; the others let it in by acknowledging what it wrote, or don't. */
async function optimistic(network, random) {
  await network.join('a', 'b', 'guest', 'stranger')
  await add(network, 'a', 'b')
  for (let round = 0; round < 3; round++) {
    await network.base('guest').append(json({ acknowledge: true, count: true, round }), { optimistic: true })
    await network.base('stranger').append(json({ acknowledge: false, round }), { optimistic: true })
    await everyoneAppends(network, ['a', 'b'], random)
    await network.index(['a', 'b'])
  }
  await network.sync()
}

/** `name` adds the others as writers; all know of it before the next line. */
async function add(network, name, ...others) {
  const { indexer } = typeof others.at(-1) === 'object' ? others.pop() : { indexer: true }
  await network.sync()
  for (const other of others) await network.base(name).append(json({ add: network.key(other), indexer }))
  await network.index(indexer ? [name, ...others] : [name])
  await network.sync()
}

async function everyoneAppends(network, names, random) {
  for (const name of names) {
    for (let n = 1 + random(3); n > 0; n--) await network.base(name).append(message(name, n, random))
  }
}

function message(name, round, random) {
  const read = Array.from({ length: random(3) }, () => random(20))
  return json({ name, round, read, count: random(3) === 0, pad: bytes(random(60), random).toString('base64') })
}

function json(value) {
  return Buffer.from(JSON.stringify(value))
}

/** None of the bytes is a brace, so that nothing is taken for JSON. */
function bytes(length, random) {
  return Buffer.from(Array.from({ length }, () => 0x80 + random(0x80)))
}

/**
 * Whole numbers from 0 up to and without a limit, the same ones for the same seed (mulberry32).
 *
 * @param {number} seed
 * @returns {(limit: number) => number}
 */
export function randomFrom(seed) {
  let state = seed
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * limit)
  }
}
