// The Node side of peer.py: the same command line, the same file of handler starts.
import fs from 'node:fs';
import readline from 'node:readline';

const SLOT_BYTES = 64;
const STAMPS_AT = 4096;
const FLUSH_EVERY = 256;

class Recorder {
  constructor(path, slot, withStamps) {
    this.file = fs.openSync(path, 'r+');
    this.at = slot * SLOT_BYTES;
    this.withStamps = withStamps;
    this.count = 0; this.first = 0n; this.last = 0n; this.isDirty = false;
    this.slot = Buffer.alloc(24); this.stamp = Buffer.alloc(8);
    setInterval(() => this.flush(), 10).unref();
  }

  // Node cannot map a file: counts are written every 256 jobs and every 10 ms, which costs it less than mapping costs others.
  hit(number) {
    const now = process.hrtime.bigint();
    if (this.count === 0) this.first = now;
    this.count += 1; this.last = now; this.isDirty = true;
    if (this.count % FLUSH_EVERY === 0) this.flush();
    if (this.withStamps) {
      this.stamp.writeBigUInt64LE(now, 0);
      fs.writeSync(this.file, this.stamp, 0, 8, STAMPS_AT + 8 * number);
    }
  }

  flush() {
    if (!this.isDirty) return;
    this.slot.writeBigUInt64LE(BigInt(this.count), 0);
    this.slot.writeBigUInt64LE(this.first, 8);
    this.slot.writeBigUInt64LE(this.last, 16);
    fs.writeSync(this.file, this.slot, 0, 24, this.at);
    this.isDirty = false;
  }
}

export async function main(peer) {
  const args = parse(peer.options);
  switch (args.op) {
    case 'describe': return answer(describe(peer, args));
    case 'setup': await peer.setup(args); answer({}); break;
    case 'work':
      process.on('SIGTERM', () => process.exit(0));
      await peer.work(args, new Recorder(args.rec, args.slot, args.stamps), ready);
      return;
    case 'single': await withProducer(peer, args, single); break;
    case 'bulk': await withProducer(peer, args, bulk); break;
    case 'produce': await withProducer(peer, args, produce); break;
    default: throw new Error(`unknown operation ${args.op}`);
  }
  process.exit(0);
}

function parse(defaults) {
  const args = { op: process.argv[2], dsn: '', n: 1000, interval: 0.05, rec: '', slot: 0, stamps: false, opt: { ...defaults } };
  for (let i = 3; i < process.argv.length; i += 1) {
    const name = process.argv[i].slice(2);
    if (name === 'stamps') { args.stamps = true; continue; }
    i += 1;
    const value = process.argv[i];
    if (name === 'opt') {
      const at = value.indexOf('=');
      args.opt[value.slice(0, at)] = parsed(value.slice(at + 1));
    } else {
      args[name] = typeof args[name] === 'number' ? Number(value) : value;
    }
  }
  return args;
}

function parsed(text) {
  try { return JSON.parse(text); } catch { return text; }
}

function describe(peer, args) {
  const versions = {};
  for (const name of peer.packages) {
    try {
      versions[name] = JSON.parse(fs.readFileSync(`${process.env.NODE_PEERS}/node_modules/${name}/package.json`)).version;
    } catch { versions[name] = null; }
  }
  return {
    versions, runtime: `Node ${process.versions.node}`, options: args.opt, steps: ['single', 'bulk', 'drain', 'pickup'],
    scale: peer.scale ?? 1, bulk_scale: peer.bulk_scale ?? null, single_jobs: peer.single_jobs ?? 1000,
    unfinished_sql: peer.unfinished_sql, audit: peer.audit ?? '', notes: peer.notes ?? '',
  };
}

async function withProducer(peer, args, send) {
  const producer = await peer.producer(args);
  answer(await send(producer, args));
  await producer.close();
}

async function single(producer, args) {
  await producer.put(0);
  const startedAt = process.hrtime.bigint();
  for (let i = 0; i < args.n; i += 1) await producer.put(i);
  return { seconds: secondsSince(startedAt), jobs: args.n };
}

async function bulk(producer, args) {
  await producer.warm?.();
  const startedAt = process.hrtime.bigint();
  await producer.bulk(args.n);
  return { seconds: secondsSince(startedAt), jobs: args.n };
}

async function produce(producer, args) {
  const times = [];
  const startedAt = process.hrtime.bigint();
  for (let i = 0; i < args.n; i += 1) {
    await sleep((i + 1) * args.interval - secondsSince(startedAt));
    const calledAt = process.hrtime.bigint();
    await producer.put(i);
    times.push([Number(calledAt), Number(process.hrtime.bigint())]);
  }
  return { times };
}

function ready() {
  return new Promise((resolve) => {
    console.log('READY');
    readline.createInterface({ input: process.stdin }).once('line', resolve);
  });
}

const sleep = (seconds) => new Promise((resolve) => { setTimeout(resolve, Math.max(0, seconds * 1000)); });
const secondsSince = (startedAt) => Number(process.hrtime.bigint() - startedAt) / 1e9;
const answer = (value) => console.log(JSON.stringify(value));
