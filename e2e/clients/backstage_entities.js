// Lets the Backstage module fill a catalog once from a PuppetDB and prints its entities: one line for
// each, its name, a tab, and what else the module says of it as JSON.
//
//     node backstage_entities.js FOLDER PORT [QUERY]
//
// The module is installed in FOLDER.

const { createRequire } = require('node:module');

const [folder, port, query] = process.argv.slice(2);
const load = createRequire(`${folder}/`);
const { PuppetDbEntityProvider } = load('@backstage/plugin-catalog-backend-module-puppetdb');
const { ConfigReader } = load('@backstage/config');

const baseUrl = `http://127.0.0.1:${port}`;
const config = new ConfigReader({ catalog: { providers: { puppetdb: { site: { baseUrl, query } } } } });

const fail = (...said) => {
  console.error(...said);
  process.exitCode = 1;
};
const quiet = () => {};
const logger = { debug: quiet, info: quiet, warn: fail, error: fail, child: () => logger };
// A schedule of one run.
const schedule = { run: task => task.fn(new AbortController().signal) };

const connection = {
  applyMutation: async ({ type, entities }) => {
    for (const { entity, locationKey } of entities) {
      const said = JSON.stringify({ type, locationKey, entity }).replaceAll(baseUrl, '');
      console.log(`${entity.metadata.name}\t${said}`);
    }
  },
};

const [provider] = PuppetDbEntityProvider.fromConfig(config, { logger, schedule });
provider.connect(connection).catch(fail);
