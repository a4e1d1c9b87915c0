import path from 'node:path';
import { build, type Plugin } from 'vite';

const ROOT = path.join(import.meta.dirname, '../..');
/** What is left of client-node: `cluster/connection.ts` alone loads it, for a kubeconfig that needs it. */
const CLIENT_NODE = '@kubernetes/client-node';
const ENTRY = 'shale-cli';

/** The command line as one module. */
export interface CliProgram {
  readonly code: string;
  /** Where npm installed the packages that it has code of, from the root of the checkout; sorted. */
  readonly packages: readonly string[];
}

/**
 * Bundles the command line with every library into one CommonJS module: Node's single executable applications (version
 * 24) run nothing else, and load nothing but what Node has built in. Native parts of libraries, all optional, are left
 * out.
 *
 * @returns the same for the same sources and libraries.
 * @throws Error for an import that can't be resolved.
 */
export async function cliProgram(): Promise<CliProgram> {
  const result = await build({
    configFile: false,
    root: ROOT,
    logLevel: 'error',
    plugins: [entry(), clientNodeInPart()],
    ssr: { target: 'node', noExternal: true },
    build: {
      ssr: true,
      target: 'node24',
      minify: false,
      write: false,
      rolldownOptions: {
        input: { shale: ENTRY },
        external: [/\.node$/],
        treeshake: { moduleSideEffects: (id) => !id.includes(CLIENT_NODE) },
        output: { format: 'cjs', codeSplitting: false },
      },
    },
  });
  const outputs = Array.isArray(result) ? result : [result];
  const [chunk, ...others] = outputs.flatMap((each) => ('output' in each ? each.output : []));
  if (chunk?.type !== 'chunk' || others.length > 0) {
    throw new Error(`the command line became ${others.length + 1} files; expected one`);
  }
  const packages = new Set(Object.keys(chunk.modules).flatMap(packageOf));
  return { code: chunk.code, packages: [...packages].sort() };
}

/** @returns the package that a module is of, as package-lock.json names its place. */
function packageOf(module: string): string[] {
  const relative = path.relative(ROOT, module.replace(/^\0/, '').replace(/\?.*$/, ''));
  const place = /^(?:node_modules\/(?:@[^/]+\/)?[^/]+\/)+/.exec(relative)?.[0];
  return place === undefined ? [] : [place.slice(0, -1)];
}

/** `cli/main.ts` awaits at its top level, which a CommonJS module can't. */
function entry(): Plugin {
  const id = `\0${ENTRY}`;
  const program = JSON.stringify(path.join(ROOT, 'cli/program.ts'));
  return {
    name: 'entry',
    enforce: 'pre',
    resolveId: (name) => (name === ENTRY ? id : undefined),
    load: (name) =>
      name === id ? `import { runProgram } from ${program};\nvoid runProgram();\n` : undefined,
  };
}

/** Of its 15 MB, which a dynamic import would keep, 1 % reads kubeconfigs. */
function clientNodeInPart(): Plugin {
  const id = `\0${CLIENT_NODE}`;
  return {
    name: 'client-node-in-part',
    enforce: 'pre',
    resolveId: (name) => (name === CLIENT_NODE ? id : undefined),
    load: (name) =>
      name === id ? `export { KubeConfig } from '${CLIENT_NODE}/dist/config.js';\n` : undefined,
  };
}
