// A drawing of the page as a PNG file.

function save(canvas: HTMLCanvasElement, name: string): Promise<void> {
  return new Promise((resolve) => {
    canvas.toBlob((blob) => {
      if (blob !== null) {
        const link = document.createElement("a");
        link.href = URL.createObjectURL(blob);
        link.download = name;
        link.click();
        URL.revokeObjectURL(link.href);
      }
      resolve();
    });
  });
}

/** Saves a canvas or an SVG as a PNG, on the page's background. */
export async function drawPng(drawing: HTMLCanvasElement | SVGSVGElement, name: string): Promise<void> {
  const { width, height } = drawing.getBoundingClientRect();
  const canvas = document.createElement("canvas");
  const scale = devicePixelRatio;
  canvas.width = Math.max(1, width * scale);
  canvas.height = Math.max(1, height * scale);
  const context = canvas.getContext("2d");
  if (context === null) {
    return;
  }
  const style = getComputedStyle(drawing);
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  if (drawing instanceof HTMLCanvasElement) {
    context.drawImage(drawing, 0, 0, canvas.width, canvas.height);
  } else {
    const copy = drawing.cloneNode(true) as SVGSVGElement;
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("width", String(width));
    copy.setAttribute("height", String(height));
    copy.style.color = style.color;
    const image = new Image();
    image.src = `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
    await image.decode();
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
  }
  await save(canvas, name);
}
