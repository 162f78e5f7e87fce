// pg-boss: large batches, burst while they come back full, NOTIFY for the idle queue.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { main } from './peer.mjs';

const require = createRequire(`${process.env.NODE_PEERS}/x.js`);
const imported = await import(pathToFileURL(require.resolve('pg-boss')).href);
const PgBoss = imported.PgBoss ?? imported.default?.PgBoss ?? imported.default;

function boss(dsn, extra = {}) {
  const made = new PgBoss({ connectionString: dsn, ...extra });
  made.on('error', (error) => console.error(String(error)));
  return made;
}

main({
  packages: ['pg-boss', 'pg'],
  options: { batchSize: 1000, localConcurrency: 1, chunk: 5000, max: 10 },
  scale: 4,
  unfinished_sql: "SELECT EXISTS (SELECT 1 FROM pgboss.job WHERE state < 'completed')",
  audit: 'finished row kept in the job table until retention',
  notes: 'a batch is one handler call, and is completed by one statement',
  async setup({ dsn }) {
    const made = boss(dsn);
    await made.start();
    await made.createQueue('bench', { notify: true });
    await made.stop({ graceful: false });
  },
  async producer({ dsn, opt }) {
    const made = boss(dsn, { max: 1, supervise: false, schedule: false });
    await made.start();
    return {
      put: (n) => made.send('bench', { n }),
      async bulk(jobs) {
        for (let first = 0; first < jobs; first += opt.chunk) {
          const specs = [];
          for (let n = first; n < Math.min(jobs, first + opt.chunk); n += 1) specs.push({ data: { n } });
          await made.insert('bench', specs);
        }
      },
      close: () => made.stop({ graceful: false }),
    };
  },
  async work({ dsn, opt }, recorder, ready) {
    const made = boss(dsn, { max: opt.max, useListenNotify: true });
    await made.start();
    await ready();
    const how = {
      batchSize: opt.batchSize, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5, localConcurrency: opt.localConcurrency,
    };
    await made.work('bench', how, async (jobs) => { for (const job of jobs) recorder.hit(job.data.n); });
  },
});
