import path from 'node:path';
import { build, type Plugin } from 'vite';

const ROOT = path.join(import.meta.dirname, '..');
/** What has native parts, starts threads with files of its own, or is loaded by few. */
const LEFT_OUT = ['@kubernetes/client-node', 'dockerode', 'pino', 'pino-pretty'];

/**
 * Writes programs as one file for each, and one for each part that they load later or share, instead of some 500 modules:
 * finding and loading these is most of what it costs to start a process. Names are kept, so that stack traces can be read.
 *
 * @param programs the TypeScript file of each program, from the root of the checkout, by the name of its bundle.
 * @param directory where to write NAME.mjs; what was there is deleted. A program finds the files beside its modules as long
 *   as the directory has the same place in the checkout, or in a copy of it.
 */
export async function bundlePrograms(
  programs: Readonly<Record<string, string>>,
  directory: string,
): Promise<void> {
  await build({
    configFile: false,
    root: ROOT,
    logLevel: 'error',
    plugins: [ownDirectory(directory)],
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

if (import.meta.main) await bundlePrograms({ main: 'cli/main.ts' }, path.join(ROOT, 'cli/dist'));
