// graphile-worker, in the configuration of its own performance page.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { main } from './peer.mjs';

const require = createRequire(`${process.env.NODE_PEERS}/x.js`);
const imported = await import(pathToFileURL(require.resolve('graphile-worker')).href);
const { Logger, makeWorkerUtils, run } = imported.default?.run ? imported.default : imported;
const logger = new Logger(() => () => {});

main({
  packages: ['graphile-worker', 'pg'],
  options: { concurrentJobs: 24, maxPoolSize: 25, localQueue: 500, completeDelay: 0, chunk: 5000 },
  scale: 5,
  unfinished_sql: 'SELECT EXISTS (SELECT 1 FROM graphile_worker._private_jobs)',
  audit: 'none: finished rows are deleted',
  notes: 'logger off',
  async setup({ dsn }) {
    const utils = await makeWorkerUtils({ connectionString: dsn, logger });
    await utils.migrate();
    await utils.release();
  },
  async producer({ dsn, opt }) {
    const utils = await makeWorkerUtils({ connectionString: dsn, maxPoolSize: 1, logger });
    return {
      warm: () => utils.withPgClient((client) => client.query('select 1')),
      put: (n) => utils.addJob('noop', { n }),
      async bulk(jobs) {
        for (let first = 0; first < jobs; first += opt.chunk) {
          const specs = [];
          for (let n = first; n < Math.min(jobs, first + opt.chunk); n += 1) specs.push({ identifier: 'noop', payload: { n } });
          await utils.addJobs(specs);
        }
      },
      close: () => utils.release(),
    };
  },
  async work({ dsn, opt }, recorder, ready) {
    await ready();
    await run({
      preset: {
        worker: {
          connectionString: dsn, logger, concurrentJobs: opt.concurrentJobs, maxPoolSize: opt.maxPoolSize,
          completeJobBatchDelay: opt.completeDelay, failJobBatchDelay: opt.completeDelay,
          ...(opt.localQueue > 0 ? { localQueue: { size: opt.localQueue } } : {}),
        },
      },
      noHandleSignals: true,
      taskList: { noop: ({ n }) => { recorder.hit(n); } },
    });
  },
});
