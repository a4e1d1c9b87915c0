/** Where ostree's container code keeps the layers that it has (ostree-rs-ext, container::store). */
export const LAYER_REFS = 'ostree/container/blob';

/**
 * @param digest of a layer as it is fetched.
 * @returns the ref that an image tool gives a layer: `_` and two hexadecimal digits and `_` for what no ref may have
 *   (ostree-rs-ext, refescape).
 */
export function layerRefOf(digest: string): string {
  return `${LAYER_REFS}/${digest.replace(':', '_3A_')}`;
}
