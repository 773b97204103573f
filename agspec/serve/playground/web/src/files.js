// What is open at first: a file to go on with, and one that it imports from.
export const FILES = {
  "shapes.py": `from areas import circle_area, rectangle_area


class Shape:
    def area(self):
        raise NotImplementedError


class Circle(Shape):
    def __init__(self, radius):
        self.radius = radius

    def area(self):
        return circle_area(self.radius)


class Rectangle(Shape):
    def __init__(self, width, height):
        self.width = width
        self.height = height

    `,
  "areas.py": `import math


def circle_area(radius):
    return math.pi * radius**2


def rectangle_area(width, height):
    return width * height
`,
};
