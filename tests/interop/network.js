/**
 * Peers of one autobase within this process: each with a store and keys of its own, replicated only when told to,
 * so that what is written between two times is a fork and what comes after merges it.
 */

import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import Autobase from 'autobase'
import AutobaseV0 from 'autobase-v0'
import AutobaseV1 from 'autobase-v1'
import Corestore from 'corestore'
import CorestoreV0 from 'corestore-v0'
import RandomAccessMemory from 'random-access-memory'

/** How long peers may take to agree, in milliseconds; it is far more than they need. */
const PATIENCE = 60_000

/** The releases of the package that can write, by the version of the messages that each writes. */
export const RELEASES = [
  { version: 0, Autobase: AutobaseV0, store: (folder, opts) => new CorestoreV0(RandomAccessMemory.reusable(), opts) },
  { version: 1, Autobase: AutobaseV1, store: (folder, opts) => new Corestore(folder, opts) },
  { version: 2, Autobase, store: (folder, opts) => new Corestore(folder, opts) }
]

export class Network {
  #release
  #seed
  #handlers
  #folder
  #bases = new Map()

  /**
   * @param {object} release one of `RELEASES`
   * @param {string} seed decides every key, so that the same seed gives the same keys
   * @param {object} handlers what each peer's autobase is given: `open`, `apply`, `valueEncoding` and so on
   * @param {string} folder where the stores are; it is removed by `close`
   */
  constructor(release, seed, handlers, folder) {
    this.#release = release
    this.#seed = seed
    // Nothing is written or skipped by a timer: runs differ as little as the package lets them.
    this.#handlers = { ackInterval: 0, ackThreshold: 0, fastForward: false, ...handlers }
    this.#folder = folder
  }

  /**
   * Makes a network, lets `use` work with it, and takes it away again, also after an error.
   *
   * @template T
   * @param {object} release
   * @param {string} seed
   * @param {object} handlers
   * @param {string} parent where the folder of the stores is made, for as long as it takes
   * @param {(network: Network) => Promise<T>} use
   * @returns {Promise<T>}
   */
  static async with(release, seed, handlers, parent, use) {
    const network = new Network(release, seed, handlers, await mkdtemp(join(parent, 'stores-')))
    try {
      return await use(network)
    } finally {
      await network.close()
    }
  }

  /**
   * Opens peers. The very first one founds the autobase and is its first writer; the others are no writers yet.
   *
   * @param {...string} names
   */
  async join(...names) {
    for (const name of names) {
      const primaryKey = createHash('sha256').update(`${this.#seed} ${name}`).digest()
      const store = this.#release.store(join(this.#folder, name), { primaryKey, unsafe: true })
      const [founder] = this.#bases.values()
      const base = new this.#release.Autobase(store.session(), founder ? founder.key : null, this.#handlers)
      this.#bases.set(name, base)
      await base.ready()
    }
  }

  get names() {
    return [...this.#bases.keys()]
  }

  /** The autobase of the peer `name`. */
  base(name) {
    return this.#bases.get(name)
  }

  /** The public key of the peer's oplog, in hexadecimal: the name that the others know the writer by. */
  key(name) {
    return this.base(name).local.key.toString('hex')
  }

  /**
   * Replicates until all of the peers have the same heads, and the indexers the same signed length.
   *
   * @param {string[]} [names] only these, so that the others fork
   */
  async sync(names = this.names) {
    const bases = names.map((name) => this.base(name))
    const disconnect = connect(bases)
    try {
      await agree(bases)
    } finally {
      await disconnect()
    }
  }

  /**
   * Syncs, then lets each of the indexers in turn acknowledge what it has: the checkpoints advance.
   *
   * @param {string[]} [names]
   */
  async index(names = this.names) {
    await this.sync(names)
    for (const name of names) {
      await this.base(name).ack()
      await this.sync(names)
    }
  }

  /**
   * Every block of the peer's oplog, as it was appended: without padding, and decrypted where the core is encrypted.
   *
   * @param {string} name
   * @returns {Promise<Buffer[]>}
   */
  async blocks(name) {
    const core = this.base(name).local.session({ valueEncoding: 'binary' })
    await core.ready()
    const blocks = []
    for (let seq = 0; seq < core.length; seq++) blocks.push(Buffer.from(await core.get(seq)))
    await core.close()
    return blocks
  }

  async close() {
    for (const base of this.#bases.values()) {
      await base.close()
      await base.store.close()
    }
    await rm(this.#folder, { recursive: true, force: true })
  }
}

/** Connects each base with each other one; returns the function that cuts the connections. */
function connect(bases) {
  const streams = []
  for (const [i, a] of bases.entries()) {
    for (const b of bases.slice(i + 1)) {
      const [one, other] = [a.replicate(true), b.replicate(false)]
      // Cutting a connection ends both of its ends with an error, which says nothing; other errors show as no agreement.
      for (const stream of [one, other]) stream.on('error', () => {})
      one.pipe(other).pipe(one)
      streams.push(one, other)
    }
  }
  return () =>
    Promise.all(
      streams.map((stream) => {
        const closed = new Promise((resolve) => stream.once('close', resolve))
        stream.destroy()
        return closed
      })
    )
}

/** Waits until all bases have the same heads, and those that index the same signed length, twice in a row. */
async function agree(bases) {
  const deadline = Date.now() + PATIENCE
  let agreed = null
  while (true) {
    for (const base of bases) await base.update()
    const heads = new Set(bases.map(headsOf))
    const signed = new Set(bases.filter((base) => base.isIndexer).map((base) => base.signedLength))
    if (heads.size === 1 && signed.size <= 1 && !bases.some((base) => base.updating)) {
      const now = JSON.stringify([...heads, ...signed])
      if (agreed === now) return
      agreed = now
    } else {
      agreed = null
    }
    if (Date.now() > deadline) {
      const found = [...heads, `signed lengths: ${[...signed].join(', ')}`].join('\n')
      throw new Error(`the peers do not agree after ${PATIENCE} ms:\n${found}`)
    }
    await sleep(5)
  }
}

function headsOf(base) {
  return base
    .heads()
    .map(({ key, length }) => `${key.toString('hex')}:${length}`)
    .join(' ')
}
