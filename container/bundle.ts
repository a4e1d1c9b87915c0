import http from 'node:http';
import path from 'node:path';
import { build, type Plugin } from 'vite';

const ROOT = path.join(import.meta.dirname, '..');
/** What has native parts, starts threads with files of its own, or is loaded by few. */
const LEFT_OUT = ['@kubernetes/client-node', 'dockerode', 'pino', 'pino-pretty'];

/**
 * Writes programs as one file for each, and one for each part that they load later or share, instead of some 500
 * modules (docs/decisions/0025-cost-of-a-process.md).
 *
 * @param programs the TypeScript file of each program, from the root of the checkout, by the name of its bundle.
 * @param directory where to write NAME.mjs; what was there is deleted. A program finds the files beside its modules as
 *   long as the directory has the same place in the checkout, or in a copy of it.
 */
export async function bundlePrograms(
  programs: Readonly<Record<string, string>>,
  directory: string,
): Promise<void> {
  await build({
    configFile: false,
    root: ROOT,
    logLevel: 'error',
    plugins: [httpWithoutFetch(), ownDirectory(directory)],
    ssr: { target: 'node', noExternal: true, external: LEFT_OUT },
    build: {
      ssr: true,
      target: 'node24',
      minify: false,
      outDir: directory,
      emptyOutDir: true,
      rolldownOptions: {
        input: Object.fromEntries(
          Object.entries(programs).map(([name, file]) => [name, path.join(ROOT, file)]),
        ),
        output: { entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' },
      },
    },
  });
}

/** In a bundle the directory is the bundle's, from which the module's own is found. */
function ownDirectory(bundles: string): Plugin {
  return {
    name: 'own-directory',
    transform(code, id) {
      if (id.includes('node_modules') || !code.includes('import.meta.dirname')) return undefined;
      const own = path.relative(bundles, path.dirname(id));
      return code.replaceAll('import.meta.dirname', `(import.meta.dirname + ${JSON.stringify(`/${own}`)})`);
    },
  };
}

/**
 * An import of node:http reads every property of the module, and those of WebSocket are getters that load Node's whole
 * fetch (undici): 60 ms of CPU time in each process. Here the module has the other ones only.
 */
function httpWithoutFetch(): Plugin {
  const virtual = '\0node-http';
  const names = Object.entries(Object.getOwnPropertyDescriptors(http))
    .filter(([, { get }]) => get === undefined)
    .map(([name]) => name);
  return {
    name: 'http-without-fetch',
    enforce: 'pre',
    resolveId: (id) => (id === 'node:http' ? virtual : undefined),
    load: (id) =>
      id === virtual
        ? `const http = process.getBuiltinModule('node:http');\nexport const { ${names.join(', ')} } = http;\nexport default http;\n`
        : undefined,
  };
}

if (import.meta.main) await bundlePrograms({ main: 'cli/main.ts' }, path.join(ROOT, 'cli/dist'));
