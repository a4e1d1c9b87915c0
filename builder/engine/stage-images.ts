import { parseReference } from '../../image/reference.ts';
import { instructionsOf } from '../../predict/image/instructions.ts';

/**
 * The images of registries that a Containerfile takes stages or files from: `FROM`, `COPY --from=` and `RUN
 * --mount=…,from=`. Names of stages, and names without a registry, which only the engine can complete, are not among
 * them.
 *
 * @returns each once, as written.
 */
export function stageImages(containerfile: string): readonly string[] {
  const images = new Set<string>();
  withImages(containerfile, (image) => {
    images.add(image);
    return image;
  });
  return [...images];
}

/** @returns the Containerfile with other names for these images. */
export function withImages(containerfile: string, rename: (image: string) => string): string {
  return instructionsOf(containerfile)
    .map((text) => renamed(text, (name) => (isOfRegistry(name) ? rename(name) : name)))
    .join('\n');
}

function isOfRegistry(name: string): boolean {
  try {
    parseReference(name);
    return true;
  } catch {
    return false;
  }
}

/** White space, and line ends that a backslash continues. */
const GAP = String.raw`(?:[ \t]|\\\r?\n)`;
const FROM = new RegExp(String.raw`^(\s*FROM${GAP}+(?:--\S+${GAP}+)*)(\S+)`, 'i');
const FLAGS = new RegExp(String.raw`^(\s*(?:COPY|ADD|RUN)${GAP}+)((?:--\S+${GAP}+)+)`, 'i');
/** `--from=NAME`, or `from=NAME` among the options of `--mount`. */
const FROM_FLAG = /(--from=|[=,]from=)([^\s,]+)/g;

function renamed(instruction: string, rename: (name: string) => string): string {
  return instruction
    .replace(FROM, (_, head: string, name: string) => `${head}${rename(name)}`)
    .replace(FLAGS, (_, head: string, flags: string) => {
      const own = flags.replace(FROM_FLAG, (__, flag: string, name: string) => `${flag}${rename(name)}`);
      return `${head}${own}`;
    });
}
